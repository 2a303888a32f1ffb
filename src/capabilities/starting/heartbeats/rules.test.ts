import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nextTick } from '../starter/rules.ts';
import { checkHeartbeat, INITIAL_STATE, STATE_BYTES_MAX, tickOf } from './rules.ts';

const json = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown);

/** Feeds a heartbeat what it sees, one after the other, and gives what it says. */
function watch(states: readonly unknown[]) {
  let prior = INITIAL_STATE;
  return states.map((observed) => {
    const tick = tickOf({}, prior, { observed });
    if (tick.change) prior = tick.change.to;
    return tick;
  });
}

describe('a tick', () => {
  it('tells a change once, whatever is seen and however often', () => {
    fc.assert(
      fc.property(fc.array(json, { maxLength: 5 }), fc.integer({ min: 1, max: 4 }), (states, times) => {
        const repeated = states.flatMap((state) => Array(times).fill(state));
        const told = (ticks: ReturnType<typeof watch>) => ticks.flatMap(({ change }) => (change ? [change.to] : []));
        expect(told(watch(repeated))).toEqual(told(watch(states)));
      }),
    );
  });

  it('knows states that are objects, and makes one of anything else', () => {
    const [first, second] = watch([3, null]);
    expect([first!.change?.to, second!.change?.to]).toEqual([{ value: 3 }, { value: null }]);
  });

  it('keeps no more of a page than tells a change, unless somebody says what matters', () => {
    const look = { observed: { status: 200, body: 'a long text' }, token: { status: 200, digest: 'd' } };
    expect(tickOf({}, INITIAL_STATE, look).change?.to).toEqual(look.token);
    expect(tickOf({ state: 'observed.body' }, INITIAL_STATE, look).change?.to).toEqual({ value: 'a long text' });
  });

  it('begins with nothing seen, and does not care for the order of members', () => {
    const [first, second, third] = watch([{ a: 1, b: 2 }, { b: 2, a: 1 }, { a: 1 }]);
    expect(first!.change).toEqual({ from: {}, to: { a: 1, b: 2 }, startsRun: true });
    expect(second).toEqual({ status: 'ok' });
    expect(third!.change).toMatchObject({ to: { a: 1 } });
  });

  it('keeps what matters, and starts only what is wanted', () => {
    const spec = { state: '{"unread": observed.body.unread}', when: 'to.unread > 0' };
    const seen = (unread: number) => ({ observed: { status: 200, body: { unread, at: Math.PI * unread } } });
    expect(tickOf(spec, INITIAL_STATE, seen(0)).change).toEqual({ from: {}, to: { unread: 0 }, startsRun: false });
    expect(tickOf(spec, { unread: 0 }, seen(3)).change).toEqual({
      from: { unread: 0 },
      to: { unread: 3 },
      startsRun: true,
    });
    expect(tickOf(spec, { unread: 3 }, seen(3))).toEqual({ status: 'ok' });
  });

  it.each([
    ['took too long', { status: 'timeout', error: 'late' } as const, {}],
    ['failed', { status: 'error', error: 'no' } as const, {}],
    ['makes no sense', { observed: 1 }, { state: 'observed.missing.member' }],
    ['is too large', { observed: 'x'.repeat(STATE_BYTES_MAX) }, {}],
  ])('that %s changes nothing', (_what, look, spec) => {
    const tick = tickOf(spec, { a: 1 }, look);
    expect(tick.change).toBeUndefined();
    expect(tick.status).not.toBe('ok');
    expect(tick.error).toEqual(expect.stringMatching(/.+/));
  });

  it('comes on the beat: after now, by less than an interval, whatever was missed', () => {
    fc.assert(
      fc.property(fc.nat(1e9), fc.integer({ min: 0, max: 3_600 }), fc.nat(1e9), (awaited, intervalSec, now) => {
        const next = nextTick(awaited, intervalSec, now);
        const intervalMs = Math.max(1, intervalSec) * 1_000;
        expect(next).toBeGreaterThan(Math.max(now, awaited));
        expect(next - Math.max(now, awaited)).toBeLessThanOrEqual(intervalMs);
        expect((next - awaited) % intervalMs).toBe(0);
      }),
    );
  });
});

describe('a heartbeat', () => {
  it.each<[string, object]>([
    ['state', { state: 'observed.' }],
    ['state', { state: 'secrets.key' }],
    ['when', { when: 'from ==', workflowId: 'w' }],
    ['when', { when: 'true' }],
    ['inputs', { inputs: {} }],
  ])('is refused for its %s', (field, rest) => {
    expect(checkHeartbeat({ intervalSec: 1, ...rest })).toMatchObject({ details: { field } });
  });
});
