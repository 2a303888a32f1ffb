import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Caller } from '../../request.ts';
import type { AuditRecord } from './record.ts';
import { RequestTrail } from './requests.ts';

const MINUTE_MS = 60_000;
const ASKED = { method: 'GET', route: '/v1/runs/{runId}', scope: 'runs:read' };

describe('the trail of requests', () => {
  it('says that a key was used, once in ten minutes', async () => {
    const { trail, clock, written } = world();
    for (let minute = 0; minute < 25; minute++) {
      trail.used(caller('a'));
      if (minute < 5) trail.used(caller('b'));
      clock.advance(MINUTE_MS);
    }
    await trail.flush();
    expect(written().map(({ action, target }) => `${action} ${target}`)).toEqual([
      'key.used a',
      'key.used b',
      'key.used a',
      'key.used a',
    ]);
  });

  it('says when something happened, not when it was written', async () => {
    const { trail, clock, written } = world();
    const at = clock.now();
    trail.used(caller('a'));
    clock.advance(150);
    await trail.flush();
    expect(written()[0]!.at).toBe(at);
  });

  it('has every request only where that is asked for', async () => {
    const { trail, written } = world({ everyRequest: false });
    trail.answered(caller('a'), { ...ASKED, status: 200, ms: 3 });
    await trail.flush();
    expect(written()).toEqual([]);
  });

  it.each([
    [200, 'success'],
    [302, 'success'],
    [403, 'denied'],
    [404, 'failed'],
    [500, 'failed'],
  ])('tells of an answer with %i as %s', async (status, outcome) => {
    const { trail, written } = world();
    trail.answered(caller('a'), { ...ASKED, status, ms: 3 });
    await trail.flush();
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

  it('is written by itself, many requests at a time', async () => {
    const { trail, clock, written, commits } = world();
    for (let count = 0; count < 250; count++) trail.answered(caller('a'), { ...ASKED, status: 200, ms: 1 });
    expect(commits()).toBe(0);
    await pass(clock, 200);
    expect(written()).toHaveLength(250);
    expect(commits()).toBe(3);
    await pass(clock, MINUTE_MS);
    expect(commits()).toBe(3);
  });

  it('keeps no more than it can, and says how many it let go', async () => {
    const { trail, written } = world();
    for (let count = 0; count < 10_007; count++) trail.answered(caller('a'), { ...ASKED, status: 200, ms: 1 });
    await trail.flush();
    expect(written()).toHaveLength(10_001);
    expect(written().at(-1)).toMatchObject({
      tenant: 'alpha',
      actor: 'host',
      action: 'audit.dropped',
      outcome: 'failed',
      details: { count: 7 },
    });
  });

  it('counts what could not be written, and writes that when it can', async () => {
    const { trail, written, fail, errors } = world();
    fail(true);
    trail.answered(caller('a'), { ...ASKED, status: 200, ms: 1 });
    await trail.flush();
    expect(errors).toHaveLength(1);
    fail(false);
    trail.answered(caller('a'), { ...ASKED, status: 200, ms: 1 });
    await trail.flush();
    expect(written().map(({ action }) => action)).toEqual(['request', 'audit.dropped']);
  });

  it('has a refusal before it is told to the caller, and never stands in its way', async () => {
    const { trail, written, fail } = world();
    await trail.denied(caller('a'), ASKED);
    expect(written()).toMatchObject([
      { action: 'authorization.deny', outcome: 'denied', details: { keyId: 'a', scopeRequired: 'runs:read' } },
    ]);
    fail(true);
    await expect(trail.denied(caller('a'), ASKED)).resolves.toBeUndefined();
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
  const trail = new RequestTrail({ clock, store, log } as unknown as Runtime, {
    record: (record) => [{ record }] as never,
    everyRequest,
  });
  return {
    trail,
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
