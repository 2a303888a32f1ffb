import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Caller } from '../../request.ts';
import type { AuditRecord } from './door.ts';
import { RequestAuditor } from './request-audit.ts';

const MINUTE_MS = 60_000;
const ASKED = { method: 'GET', route: '/v1/runs/{runId}', scope: 'runs:read' };

describe('the request audit', () => {
  it('records the use of a key once in ten minutes', async () => {
    const { requests, clock, written } = world();
    for (let minute = 0; minute < 25; minute++) {
      requests.keyUsed(caller('a'));
      if (minute < 5) requests.keyUsed(caller('b'));
      clock.advance(MINUTE_MS);
    }
    await requests.flush();
    expect(written().map(({ action, target }) => `${action} ${target}`)).toEqual([
      'key.used a',
      'key.used b',
      'key.used a',
      'key.used a',
    ]);
  });

  it('records when something happened, not when it was stored', async () => {
    const { requests, clock, written } = world();
    const at = clock.now();
    requests.keyUsed(caller('a'));
    clock.advance(150);
    await requests.flush();
    expect(written()[0]!.at).toBe(at);
  });

  it('records every request only if the operator asks for it', async () => {
    const { requests, written } = world({ everyRequest: false });
    requests.answered(caller('a'), { ...ASKED, status: 200, ms: 3 });
    await requests.flush();
    expect(written()).toEqual([]);
  });

  it.each([
    [200, 'success'],
    [302, 'success'],
    [403, 'denied'],
    [404, 'failed'],
    [500, 'failed'],
  ])('records an answer with status %i as %s', async (status, outcome) => {
    const { requests, written } = world();
    requests.answered(caller('a'), { ...ASKED, status, ms: 3 });
    await requests.flush();
    expect(written()).toMatchObject([
      {
        tenant: 'alpha',
        workspace: 'north',
        actor: 'ada',
        action: 'request',
        target: 'GET /v1/runs/{runId}',
        outcome,
        details: { keyId: 'a', scope: 'runs:read', status, latencyMs: 3 },
      },
    ]);
  });

  it('stores records in batches after a short delay', async () => {
    const { requests, clock, written, commits } = world();
    for (let count = 0; count < 250; count++) requests.answered(caller('a'), { ...ASKED, status: 200, ms: 1 });
    expect(commits()).toBe(0);
    await pass(clock, 200);
    expect(written()).toHaveLength(250);
    expect(commits()).toBe(3);
    await pass(clock, MINUTE_MS);
    expect(commits()).toBe(3);
  });

  it('drops records beyond its limit and records how many', async () => {
    const { requests, written } = world();
    for (let count = 0; count < 10_007; count++) requests.answered(caller('a'), { ...ASKED, status: 200, ms: 1 });
    await requests.flush();
    expect(written()).toHaveLength(10_001);
    expect(written().at(-1)).toMatchObject({
      tenant: 'alpha',
      actor: 'host',
      action: 'audit.dropped',
      outcome: 'failed',
      details: { count: 7 },
    });
  });

  it('counts records that could not be stored and records the number later', async () => {
    const { requests, written, fail, errors } = world();
    fail(true);
    requests.answered(caller('a'), { ...ASKED, status: 200, ms: 1 });
    await requests.flush();
    expect(errors).toHaveLength(1);
    fail(false);
    requests.answered(caller('a'), { ...ASKED, status: 200, ms: 1 });
    await requests.flush();
    expect(written().map(({ action }) => action)).toEqual(['request', 'audit.dropped']);
  });

  it('stores a denial before it settles, and never throws', async () => {
    const { requests, written, fail } = world();
    await requests.denied(caller('a'), ASKED);
    expect(written()).toMatchObject([
      { action: 'authorization.deny', outcome: 'denied', details: { keyId: 'a', scopeRequired: 'runs:read' } },
    ]);
    fail(true);
    await expect(requests.denied(caller('a'), ASKED)).resolves.toBeUndefined();
  });
});

function world({ everyRequest = true } = {}) {
  const clock = new ManualClock();
  const records: AuditRecord[] = [];
  const errors: string[] = [];
  let isFailing = false;
  let count = 0;
  const store = {
    commit: async (unit: readonly { record: AuditRecord }[]) => {
      count++;
      if (isFailing) throw new Error('away');
      records.push(...unit.map(({ record }) => record));
    },
  };
  const log = { error: (_fields: object, message: string) => errors.push(message) };
  const requests = new RequestAuditor({ clock, store, log } as unknown as Runtime, {
    audit: { record: (record) => [{ record }] as never },
    everyRequest,
  });
  return {
    requests,
    clock,
    errors,
    written: () => records,
    commits: () => count,
    fail: (is: boolean) => {
      isFailing = is;
    },
  };
}

function caller(keyId: string): Caller {
  return { keyId, subject: { tenant: 'alpha', workspace: 'north', principal: 'ada' } } as Caller;
}

async function pass(clock: ManualClock, ms: number): Promise<void> {
  clock.advance(ms);
  await new Promise((resolve) => setImmediate(resolve));
}
