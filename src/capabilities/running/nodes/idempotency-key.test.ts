import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { configProblems, outputsOf, run } from '../../../../test/support/node-context.ts';

const TYPE = 'core.openwop.http.idempotency-key';

describe(TYPE, () => {
  it('makes by default a key of the run, the node and the payload', () => {
    const payload = { to: 'ada', amount: 5 };
    expect(outputsOf(TYPE, { inputs: { payload } })).toEqual({ key: digest(`run-1\0a\0${JSON.stringify(payload)}`) });
    expect(outputsOf(TYPE, { inputs: { payload }, config: { mode: 'composite' } })).toEqual(
      outputsOf(TYPE, { inputs: { payload } }),
    );
  });

  it.each([null, undefined])('has nothing behind the second NUL where the payload is %j', (payload) => {
    expect(outputsOf(TYPE, { inputs: { payload } })).toEqual({ key: digest('run-1\0a\0') });
  });

  it('takes the run and the node from its inputs where they are given', () => {
    expect(outputsOf(TYPE, { inputs: { runId: 'r', nodeId: 'n', payload: 0 } })).toEqual({
      key: digest(['r', 'n', '0'].join('\0')),
    });
  });

  it('makes in mode hash a key of the payload alone', () => {
    expect(outputsOf(TYPE, { config: { mode: 'hash' }, inputs: { payload: [1], runId: 'r' } })).toEqual({
      key: digest('[1]'),
    });
    expect(outputsOf(TYPE, { config: { mode: 'hash' } })).toEqual({ key: digest('null') });
  });

  it('is the same however often it is made', () => {
    const given = { inputs: { payload: { a: 1 } } };
    expect(outputsOf(TYPE, { ...given, attempt: 3 })).toEqual(outputsOf(TYPE, given));
  });

  it('looks like a key', () => {
    expect((outputsOf(TYPE) as { key: string }).key).toMatch(/^openwop-[0-9a-f]{16}$/);
  });

  it('refuses the mode uuid and says that it was removed', () => {
    const failed = { code: 'CONFIG_INVALID', message: expect.stringMatching(/removed/), retryable: false };
    expect(run(TYPE, { config: { mode: 'uuid' } })).toEqual({ failed });
    expect(configProblems(TYPE, { mode: 'sequence' })).toEqual(['.mode']);
  });
});

function digest(text: string): string {
  return `openwop-${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
}
