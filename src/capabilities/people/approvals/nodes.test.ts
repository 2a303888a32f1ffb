import { describe, expect, it } from 'vitest';
import { node } from '../../../../test/support/definitions.ts';
import { catalogOf } from '../../../runtime/catalog.ts';
import type { NodeContext, Outcome } from '../../../runtime/node-type.ts';
import { governanceGate } from './nodes.ts';

const { typeId } = governanceGate;

function run(given: Partial<NodeContext>): Outcome {
  const { config = {} } = given;
  const context = { node: node('gate', typeId, { config }), config, declared: {}, routes: () => false, ...given };
  return governanceGate.run(context as NodeContext) as Outcome;
}

describe('a governance gate', () => {
  it('asks for an approval in which its rules ride along', () => {
    const config = { requiredRole: 'reviewer', quorum: 2, override: { requiredRole: 'owner' }, title: 'Deploy?' };
    expect(run({ config, declared: { build: 7 } })).toEqual({
      interrupt: {
        kind: 'approval',
        data: {
          artifactId: 'gate',
          artifactType: 'approval',
          title: 'Deploy?',
          actions: ['accept', 'reject'],
          gateId: 'gate',
          requiredRole: 'reviewer',
          quorum: 2,
          override: { requiredRole: 'owner' },
          artifactData: { build: 7 },
        },
        timeoutMs: undefined,
      },
    });
  });

  it('waits so many seconds, and never a fraction of a millisecond', () => {
    const wait = (timeoutSec: number) => run({ config: { requiredRole: 'owner', timeoutSec } });
    expect(wait(86_400)).toMatchObject({ interrupt: { timeoutMs: 86_400_000 } });
    expect(wait(0.0001)).toMatchObject({ interrupt: { timeoutMs: 1 } });
  });

  it.each(['granted', 'overridden'])('is done when it is %s', (decision) => {
    expect(run({ answer: { value: { decision } } })).toEqual({ done: { outputs: { decision } } });
  });

  it('that is rejected fails for good, unless an edge is meant for it', () => {
    const value = { decision: 'rejected', reason: 'not yet' };
    expect(run({ answer: { value } })).toMatchObject({ failed: { code: 'approval_rejected', retryable: false } });
    expect(run({ answer: { value }, routes: () => true })).toEqual({ done: { outputs: value } });
    const late = { decision: 'rejected', reason: 'timeout' };
    expect(run({ answer: { value: late } })).toMatchObject({ failed: { code: 'approval_timeout' } });
  });

  it.each([
    [{}, false],
    [{ quorum: 2 }, false],
    [{ requiredRole: 'king' }, false],
    [{ requiredScope: 'runs:*' }, false],
    [{ requiredRole: 'owner', quorum: 1.5 }, false],
    [{ requiredRole: 'owner', timeoutSec: -1 }, false],
    [{ requiredRole: 'owner', override: { requiredRole: 'king' } }, false],
    [{ requiredRole: 'owner', artifactHash: 'ABC' }, false],
    [{ requiredRole: 'owner' }, true],
    [{ requiredScope: 'packs:publish' }, true],
    [{ requiredRole: 'owner', requiredScope: 'packs:publish', overrideBypassesQuorum: true }, true],
  ])('with the config %j: taken is %s', (config, isTaken) => {
    const problems = catalogOf([governanceGate]).checkConfig(node('gate', typeId, { config }));
    expect(problems.length === 0).toBe(isTaken);
  });
});
