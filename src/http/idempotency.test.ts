import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../test/support/manual-clock.ts';
import { ERRORS, type ErrorCode, isRefusal, refuse } from '../protocol/errors.ts';
import type { IdempotencyRow } from '../store/idempotency.ts';
import type { Unit } from '../store/sql.ts';
import type { Store } from '../store/store.ts';
import { Idempotency, isFinal, type KeyedRequest, type Replay, type Ticket } from './idempotency.ts';

const REQUEST: KeyedRequest = {
  scope: 'alpha',
  operation: 'POST /v1/runs',
  key: 'key-1',
  content: { body: { a: 1 } },
};

describe('the first request with a key', () => {
  it('gets a ticket', async () => {
    const { idempotency } = host();
    expect(await take(idempotency)).toHaveProperty('record');
  });

  it('leaves its answer in the transaction of its deed', async () => {
    const { idempotency, keep } = host();
    const ticket = await take(idempotency);
    const [write, ...more] = ticket.record({ status: 201, body: { runId: 'run-1' } });
    expect(more).toEqual([]);
    expect(write).toMatchObject({ expect: 1, expectation: 'idempotency' });
    keep([write!]);
    ticket.done();
    expect(await idempotency.begin(REQUEST)).toEqual({
      replay: { status: 201, text: '{"runId":"run-1"}', headers: {} },
    });
  });

  it('keeps the headers of its answer, too', async () => {
    const { idempotency, keep } = host();
    const ticket = await take(idempotency);
    keep(ticket.record({ status: 201, body: {}, headers: { Location: '/there' } }));
    ticket.done();
    expect(await idempotency.begin(REQUEST)).toMatchObject({ replay: { headers: { Location: '/there' } } });
  });

  it('may have an answer that is text already, or none', async () => {
    for (const [reply, text] of [
      [{ status: 200, text: '{"a":1}' }, '{"a":1}'],
      [{ status: 204 }, ''],
    ] as const) {
      const { idempotency, keep } = host();
      const ticket = await take(idempotency);
      keep(ticket.record(reply));
      ticket.done();
      expect(await idempotency.begin(REQUEST)).toEqual({ replay: { status: reply.status, text, headers: {} } });
    }
  });

  it('may come to nothing: the next one begins anew', async () => {
    const { idempotency } = host();
    (await take(idempotency)).done();
    expect('done' in (await take(idempotency))).toBe(true);
  });

  it('does not store the key itself', async () => {
    const { idempotency } = host();
    const key = 'a-key-that-nobody-should-see';
    const ticket = (await idempotency.begin({ ...REQUEST, key })) as Ticket;
    expect(JSON.stringify(ticket.record({ status: 200, body: {} }))).not.toContain(key);
  });
});

describe('another request with the same key', () => {
  it('gets the same answer when it asks the same, whatever the order of its members', async () => {
    const { idempotency } = await answered({ b: 1, a: { y: 2, x: 1 } });
    expect(await idempotency.begin({ ...REQUEST, content: { a: { x: 1, y: 2 }, b: 1 } })).toMatchObject({
      replay: { status: 201 },
    });
  });

  it('is refused when it asks something else, and learns nothing of the first answer', async () => {
    const { idempotency } = await answered({ a: 1 });
    const refusal = await idempotency.begin({ ...REQUEST, content: { a: 2 } });
    expect(refusal).toMatchObject({ refused: 'idempotency_key_mismatch' });
    expect(JSON.stringify(refusal)).not.toContain('run-1');
  });

  it.each([
    ['scope', { scope: 'beta' }],
    ['operation', { operation: 'POST /v1/runs/{runId}/cancel' }],
    ['key', { key: 'other' }],
  ])('is unrelated where the %s is another', async (_what, other) => {
    const { idempotency } = await answered(REQUEST.content);
    expect('done' in (await idempotency.begin({ ...REQUEST, ...other }))).toBe(true);
  });

  it('is free again once it was refused or answered', async () => {
    const { idempotency } = await answered({ a: 1 });
    await idempotency.begin({ ...REQUEST, content: { a: 2 } });
    expect(await idempotency.begin({ ...REQUEST, content: { a: 1 } })).toMatchObject({ replay: {} });
  });
});

describe('a twin that arrives while the first is being carried out', () => {
  it('waits, and gets the answer of the first', async () => {
    const { idempotency, keep } = host();
    const first = await take(idempotency);
    const twin = idempotency.begin(REQUEST);
    keep(first.record({ status: 201, body: { runId: 'run-1' } }));
    first.done();
    expect(await twin).toEqual({ replay: { status: 201, text: '{"runId":"run-1"}', headers: {} } });
  });

  it('carries it out itself where the first came to nothing', async () => {
    const { idempotency } = host();
    const first = await take(idempotency);
    const twin = idempotency.begin(REQUEST);
    first.done();
    expect('done' in (await twin)).toBe(true);
  });

  it('is one of many of which one at a time gets a turn', async () => {
    const { idempotency } = host();
    const first = await take(idempotency);
    let turns = 0;
    const twins = Array.from({ length: 5 }, () => idempotency.begin(REQUEST));
    for (const twin of twins) {
      void twin.then((ticket) => {
        turns++;
        (ticket as Ticket).done();
      });
    }
    expect(turns).toBe(0);
    first.done();
    await Promise.all(twins);
    expect(turns).toBe(5);
  });

  it('gives up after five seconds and says when to come back', async () => {
    const { idempotency, clock } = host();
    const first = await take(idempotency);
    const twin = idempotency.begin(REQUEST);
    clock.advance(5_000);
    const refusal = await twin;
    expect(refusal).toMatchObject({
      refused: 'idempotency_in_flight',
      details: { retryAfter: expect.any(Number) },
      headers: { 'Retry-After': expect.stringMatching(/^[1-9]\d*$/) },
    });
    first.done();
  });

  it('does not give up a moment earlier', async () => {
    const { idempotency, clock } = host();
    const first = await take(idempotency);
    const twin = idempotency.begin(REQUEST);
    clock.advance(4_999);
    first.done();
    expect(isRefusal(await twin)).toBe(false);
  });

  it('does not wait for requests with other keys', async () => {
    const { idempotency } = host();
    await take(idempotency);
    expect('done' in (await idempotency.begin({ ...REQUEST, key: 'other' }))).toBe(true);
  });
});

describe('a twin on another host', () => {
  it('is found once its answer turns out to be there already', async () => {
    const { idempotency, keep } = host();
    const ticket = await take(idempotency);
    expect(await ticket.recall()).toBeUndefined();
    const elsewhere = await take(host().idempotency);
    keep(elsewhere.record({ status: 201, body: { runId: 'run-2' } }));
    expect(await ticket.recall()).toEqual({
      replay: { status: 201, text: '{"runId":"run-2"}', headers: {} },
    } satisfies Replay);
  });
});

describe('a store that cannot be read', () => {
  it('leaves no request behind that others would wait for', async () => {
    const { idempotency, breakReads } = host();
    breakReads(true);
    await expect(idempotency.begin(REQUEST)).rejects.toThrow('away');
    breakReads(false);
    expect('done' in (await idempotency.begin(REQUEST))).toBe(true);
  });
});

describe('a key', () => {
  it.each(['k', 'a'.repeat(255), '!~', '8e03978e-40d5-43dd-bc93-6894a57f9324'])('may be %s', async (key) => {
    expect('done' in (await host().idempotency.begin({ ...REQUEST, key }))).toBe(true);
  });

  it.each(['', 'a'.repeat(256), 'a b', 'ä', '\u0000', 'a\n'])('is not %j', async (key) => {
    expect(await host().idempotency.begin({ ...REQUEST, key })).toMatchObject({
      refused: 'validation_error',
      details: { field: 'Idempotency-Key' },
    });
  });
});

describe('a refusal that is final', () => {
  const final = (code: ErrorCode): boolean => isFinal(refuse(code, 'No.'), ERRORS[code]);

  it.each([
    'not_found',
    'conflict',
    'run_terminal',
    'run_state_conflict',
    'capability_required',
    'version_conflict',
  ] as const)('is %s: the same every time', (code) => {
    expect(final(code)).toBe(true);
  });

  // Of the refusals with status 400 only a malformed request is left unkept; all others are kept like any 4xx.
  it.each(['unsupported_mock_provider', 'unsupported_force_engine_version', 'channel_access_denied'] as const)(
    'is %s, too',
    (code) => {
      expect(final(code)).toBe(true);
    },
  );

  it.each([
    'validation_error',
    'unauthenticated',
    'forbidden',
    'mock_provider_forbidden',
    'rate_limited',
    'internal_error',
    'service_unavailable',
  ] as const)('is not %s', (code) => {
    expect(final(code)).toBe(false);
  });

  it('is none that says when to try again', () => {
    expect(isFinal({ ...refuse('conflict', 'No.'), headers: { 'Retry-After': '1' } }, 409)).toBe(false);
  });
});

describe('a record', () => {
  const asOwner: KeyedRequest = {
    ...REQUEST,
    rights: { scopes: new Set(['runs:create', 'keys:manage']), role: 'owner' },
  };
  const answered = async () => {
    const { idempotency, keep } = host();
    const ticket = await idempotency.begin(asOwner);
    if (!('done' in ticket)) throw new Error('no ticket');
    keep(ticket.record({ status: 200, body: {} }));
    ticket.done();
    return idempotency;
  };

  it('is for nobody else, whatever key and request they send', async () => {
    const idempotency = await answered();
    expect(await idempotency.begin({ ...asOwner, scope: 'beta' })).toHaveProperty('done');
  });

  it.each<[string, KeyedRequest['rights'], string]>([
    ['the same rights', asOwner.rights, 'replay'],
    ['more rights', { scopes: new Set(['runs:create', 'keys:manage', 'runs:read']), role: 'owner' }, 'replay'],
    ['a scope less', { scopes: new Set(['runs:create']), role: 'owner' }, 'refused'],
    ['a lower role', { scopes: new Set(['runs:create', 'keys:manage']), role: 'editor' }, 'refused'],
    ['no rights', undefined, 'refused'],
  ])('is given with %s or not: %j is %s', async (_what, rights, outcome) => {
    const idempotency = await answered();
    expect(await idempotency.begin({ ...asOwner, rights })).toHaveProperty(outcome);
  });
});

type Stored = [string, string, number, string, string | null, string | null];

/** Idempotency on a store that holds its answers in a map. */
function host() {
  const rows = new Map<string, IdempotencyRow>();
  const clock = new ManualClock();
  let isBroken = false;
  const store = {
    read: async ({ params }: { params: readonly unknown[] }) => {
      if (isBroken) throw new Error('the store is away');
      const row = rows.get(String(params[0]));
      return row ? [row] : [];
    },
  } as unknown as Store;
  return {
    idempotency: new Idempotency(store, clock),
    clock,
    breakReads: (broken: boolean) => {
      isBroken = broken;
    },
    /** Commits the record of a ticket. */
    keep: (unit: Unit) => {
      for (const { params } of unit) {
        const [record_key, digest, status, body, headers, rights] = params as Stored;
        rows.set(record_key, { record_key, digest, status, body, headers, rights });
      }
    },
  };
}

async function take(idempotency: Idempotency): Promise<Ticket> {
  const ticket = await idempotency.begin(REQUEST);
  if (!('done' in ticket)) throw new Error(`no ticket: ${JSON.stringify(ticket)}`);
  return ticket;
}

/** A host that has answered one request with this content. */
async function answered(content: unknown) {
  const made = host();
  const ticket = (await made.idempotency.begin({ ...REQUEST, content })) as Ticket;
  made.keep(ticket.record({ status: 201, body: { runId: 'run-1' } }));
  ticket.done();
  return made;
}
