import { describe, expect, it } from 'vitest';
import { configProblems, run, typeOf } from '../../../../test/support/node-context.ts';
import type { ChildState } from '../../../engine/run/run.ts';
import type { RunStatus } from '../../../protocol/running/runs.ts';
import type { ChildResult } from '../../../runtime/child-request.ts';

const TYPE = 'vendor.capstan.flow.for-each';

/** Children with these statuses, each of which would give its own number as its result. */
function after(statuses: readonly RunStatus[]): {
  children: ChildState[];
  childResult(runId: string): Promise<ChildResult>;
} {
  return {
    children: statuses.map((status, index) => ({ runId: `run-${index}`, status })),
    childResult: async (runId) => {
      const status = statuses[Number(runId.slice(4))] as ChildResult['status'];
      const error = status === 'failed' ? { error: { code: 'broken', message: 'It broke.' } } : {};
      return { runId, status, variables: { result: runId }, ...error };
    },
  };
}

const call = (statuses: readonly RunStatus[], config: object = {}, items = ['a', 'b', 'c', 'd', 'e']) =>
  run(TYPE, {
    config: { workflowId: 'child', concurrency: 2, ...config },
    inputs: { array: items },
    variables: { tone: 'calm' },
    ...after(statuses),
  });

const request = (item: string, more: object = {}): object => ({ workflowId: 'child', variables: { item, ...more } });

describe(TYPE, () => {
  it('starts as many children as may run at a time, in the order of the items', () => {
    expect(call([])).toEqual({ children: [request('a'), request('b')] });
    expect(call(['running', 'running'])).toEqual({ children: [] });
    expect(call(['running', 'completed'])).toEqual({ children: [request('c')] });
    expect(call(['completed', 'completed', 'waiting-approval'])).toEqual({ children: [request('d')] });
    expect(call(['completed', 'completed', 'completed', 'completed', 'running'])).toEqual({ children: [] });
  });

  it('tells each child its item, its place and what they share', () => {
    const config = { itemVariable: 'line', indexVariable: 'place', inputMapping: { mood: 'tone', none: 'absent' } };
    expect(call(['completed'], config)).toEqual({
      children: [
        { workflowId: 'child', variables: { line: 'b', place: 1, mood: 'calm' } },
        { workflowId: 'child', variables: { line: 'c', place: 2, mood: 'calm' } },
      ],
    });
  });

  it('gathers results in the order of the items', async () => {
    expect(await call(['completed', 'completed'], {}, ['a', 'b'])).toEqual({
      done: {
        outputs: {
          joinOutcome: 'satisfied',
          results: ['run-0', 'run-1'],
          children: [
            { childRunId: 'run-0', childStatus: 'completed' },
            { childRunId: 'run-1', childStatus: 'completed' },
          ],
          completed: 2,
          total: 2,
        },
      },
    });
    expect(await call(['completed'], { resultVariable: 'absent' }, ['a'])).toMatchObject({
      done: { outputs: { results: [null] } },
    });
  });

  it('is done at once with nothing to do', async () => {
    expect(await call([], {}, [])).toMatchObject({ done: { outputs: { joinOutcome: 'satisfied', results: [] } } });
  });

  it.each(['failed', 'cancelled'] as const)(
    'fails with the first child that %s, and starts no more',
    async (status) => {
      expect(await call(['running', status])).toMatchObject({
        failed: {
          code: 'child_failed',
          retryable: false,
          details: { index: 1, childRunId: 'run-1', childStatus: status },
        },
      });
    },
  );

  it('goes on without those that failed where it is told to', async () => {
    const config = { onChildFailure: 'collect' };
    expect(call(['failed', 'running'], config)).toEqual({ children: [request('c')] });
    expect(await call(['failed', 'completed'], config, ['a', 'b'])).toMatchObject({
      done: {
        outputs: {
          joinOutcome: 'partial',
          results: [null, 'run-1'],
          children: [{ childStatus: 'failed', error: { code: 'broken', message: 'It broke.' } }, {}],
          completed: 1,
          total: 2,
        },
      },
    });
  });

  it('takes a list of bounded length, and gives results of bounded size', async () => {
    expect(call([], {}, new Array(1_001).fill('a'))).toMatchObject({
      failed: { code: 'validation_error', retryable: false, details: { items: 1_001, limit: 1_000 } },
    });
    expect(run(TYPE, { config: { workflowId: 'child' }, inputs: { array: 'abc' } })).toMatchObject({
      failed: { code: 'validation_error' },
    });
    const outcome = await run(TYPE, {
      config: { workflowId: 'child' },
      inputs: { array: ['a'] },
      children: [{ runId: 'run-0', status: 'completed' }],
      childResult: async (runId) => ({ runId, status: 'completed', variables: { result: 'x'.repeat(1_000_000) } }),
    });
    expect(outcome).toMatchObject({ failed: { code: 'result_too_large', retryable: false } });
  });

  it('is refused with a list in the definition that is too long', () => {
    const problems = (length: number) =>
      typeOf(TYPE).checkInputs!({ array: { type: 'static', value: new Array(length).fill(0) } });
    expect(problems(1_000)).toEqual([]);
    expect(problems(1_001)).toEqual([{ path: '.array', message: 'must have at most 1000 items' }]);
  });

  it('is refused with a config that makes no sense', () => {
    expect(configProblems(TYPE, {})).not.toEqual([]);
    expect(configProblems(TYPE, { workflowId: 'w', concurrency: 33 })).toEqual(['.concurrency']);
    expect(configProblems(TYPE, { workflowId: 'w', onChildFailure: 'ignore' })).toEqual(['.onChildFailure']);
  });
});
