import { describe, expect, it } from 'vitest';
import { configProblems, run } from '../../../../test/support/node-context.ts';
import type { ChildResult } from '../../../runtime/child-request.ts';

const TYPE = 'core.subWorkflow';

describe('core.subWorkflow, when it is called', () => {
  it('asks for a child', () => {
    expect(run(TYPE, { config: { workflowId: 'child' } })).toEqual({ child: { workflowId: 'child', variables: {} } });
  });

  it('gives the child variables of the parent under the names of the child', () => {
    const config = { workflowId: 'child', inputMapping: { theirs: 'ours', zero: 'nothing' } };
    expect(run(TYPE, { config, variables: { ours: [1], nothing: null, other: 2 } })).toEqual({
      child: { workflowId: 'child', variables: { theirs: [1], zero: null } },
    });
  });

  it('leaves out what the parent has no value for: never null, never an error', () => {
    const config = { workflowId: 'child', inputMapping: { theirs: 'unset' } };
    expect(run(TYPE, { config })).toEqual({ child: { workflowId: 'child', variables: {} } });
  });

  it.each(['constructor', 'toString', '__proto__'])('finds no variable called %s in what all objects have', (name) => {
    const config = { workflowId: 'child', inputMapping: { theirs: name } };
    expect(run(TYPE, { config, variables: { other: 1 } })).toEqual({ child: { workflowId: 'child', variables: {} } });
  });
});

describe('core.subWorkflow, when the child has ended', () => {
  const config = { workflowId: 'child', outputMapping: { ours: 'theirs', missing: 'unset' } };

  it('gives its run and status, and takes over variables under the names of the parent', () => {
    expect(run(TYPE, { config, child: ended('completed', { theirs: 42 }) })).toEqual({
      done: { outputs: { childRunId: 'run-2', childStatus: 'completed' }, variables: { ours: 42 } },
    });
  });

  it.each(['constructor', 'toString', '__proto__'])('finds no variable called %s in what all objects have', (name) => {
    const given = { workflowId: 'child', outputMapping: { ours: name } };
    expect(run(TYPE, { config: given, child: ended('completed') })).toEqual({
      done: { outputs: { childRunId: 'run-2', childStatus: 'completed' }, variables: {} },
    });
  });

  it.each(['failed', 'cancelled'] as const)('fails where the child %s, for good', (status) => {
    expect(run(TYPE, { config, child: ended(status) })).toMatchObject({
      failed: { code: 'child_failed', retryable: false, details: { childRunId: 'run-2', childStatus: status } },
    });
  });

  it('says why the child failed', () => {
    const child = { ...ended('failed'), error: { code: 'boom', message: 'It went boom.' } };
    expect(run(TYPE, { config, child })).toMatchObject({
      failed: { message: expect.stringContaining('It went boom.'), details: { childError: 'boom' } },
    });
  });

  it.each(['failed', 'cancelled'] as const)(
    'takes it where the child %s and it is told to, and maps nothing',
    (status) => {
      const absorbing = { ...config, onChildFailure: 'absorb' };
      expect(run(TYPE, { config: absorbing, child: ended(status, { theirs: 42 }) })).toEqual({
        done: { outputs: { childRunId: 'run-2', childStatus: status } },
      });
    },
  );
});

describe('the config of core.subWorkflow', () => {
  it.each([
    {},
    { workflowId: '' },
    { workflowId: 'child', waitForCompletion: false },
    { workflowId: 'child', onChildFailure: 'continue' },
    { workflowId: 'child', inputMapping: { a: 1 } },
    { workflowId: 'child', outputMapping: ['a'] },
    { workflowId: 'child', propagateCancellation: 'yes' },
  ])('is not %j', (config) => {
    expect(configProblems(TYPE, config)).not.toEqual([]);
  });

  it('may carry an attestation, which is ignored', () => {
    const config = { workflowId: 'child', waitForCompletion: true, outputAttestation: { checksum: true } };
    expect(configProblems(TYPE, config)).toEqual([]);
  });
});

function ended(status: ChildResult['status'], variables: Record<string, unknown> = {}): ChildResult {
  return { runId: 'run-2', status, variables };
}
