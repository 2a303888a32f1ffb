import { describe, expect, it } from 'vitest';
import { contextOf } from '../../../../test/support/node-context.ts';
import type { NodeContext } from '../../../runtime/node-type.ts';
import { annotate } from './nodes.ts';

const TYPE = 'core.feedback.annotate';

/** What the node asks of its seam, and what comes of it. */
async function judge(given: Partial<NodeContext>): Promise<{ asked: unknown; outcome: unknown }> {
  let asked: unknown;
  const context = contextOf(TYPE, given);
  const seam = async (request: unknown) => {
    asked = request;
    return { annotationId: 'ann-1' };
  };
  const outcome = await annotate.run({ ...context, effects: { ...context.effects, annotate: seam } });
  return { asked, outcome };
}

describe('a node that judges', () => {
  it('says what its config says, and gives the id of the annotation', async () => {
    const { asked, outcome } = await judge({ config: { kind: 'rating', rating: 4, nodeId: 'draft' } });
    expect(asked).toEqual({ by: { nodeId: 'a' }, judgement: { kind: 'rating', rating: 4, nodeId: 'draft' } });
    expect(outcome).toEqual({ done: { outputs: { annotationId: 'ann-1' } } });
  });

  it('believes its ports more than its config, and those alone that it has', async () => {
    const { asked } = await judge({
      config: { kind: 'rating', rating: 4, note: 'from the config' },
      declared: { rating: 2, runId: 'run-2', note: null, text: 'of no use', constructor: 'x' },
    });
    expect(asked).toMatchObject({ judgement: { kind: 'rating', rating: 2, runId: 'run-2' } });
    expect(Object.keys((asked as { judgement: object }).judgement).sort()).toEqual(['kind', 'rating', 'runId']);
  });

  it('stands for the agent that it names', async () => {
    const context = contextOf(TYPE, { config: { kind: 'flag' } });
    const node = { ...context.node, agent: { agentId: 'core.agents.judge' } };
    const { asked } = await judge({ config: { kind: 'flag' }, node });
    expect(asked).toMatchObject({ by: { nodeId: 'a', agentId: 'core.agents.judge' } });
  });

  it.each([
    [{}],
    [{ kind: 'applause' }],
    [{ kind: 'rating', rating: '4' }],
    [{ kind: 'rating', rating: 6 }],
    [{ kind: 'flag', nodeId: '' }],
    [{ kind: 'label', label: ['x'] }],
  ])('fails for good when it is given %j', async (declared) => {
    const { asked, outcome } = await judge({ declared });
    expect(asked).toBeUndefined();
    expect(outcome).toMatchObject({ failed: { code: 'validation_error', retryable: false } });
  });
});
