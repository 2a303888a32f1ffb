import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Api } from '../support/api.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { resolve } from '../support/interrupts.ts';
import { LearningProbe, steadyModel } from '../support/learning-probe.ts';
import { apply, drafted, evidenceOf, INSTALLED, PROPOSALS, revise, rewrite } from '../support/proposals.ts';
import { STORES } from '../support/stores.ts';

/**
 * Goal: what is not applied has no effect on any run. Method: made-up histories of everything that can be done with
 * proposals short of applying them, and of applying and taking back; runs that use prompts, chains, agents and schedules
 * must then do, event by event, what they did before.
 */

const HISTORIES = 12;

type Step = (proposal: { readonly id: string; readonly artifact: object }) => Promise<unknown>;

describe.each(STORES)('histories of proposals, on %s', (store) => {
  let host: TestHost;
  let model: Awaited<ReturnType<typeof steadyModel>>;
  let probe: LearningProbe;
  beforeAll(async () => {
    model = await steadyModel();
    host = await startTestHost(store, inject('postgresUrl'), {
      models: model.models,
      proposals: { activation: 'approval-gate', gates: [], pendingMax: 10_000 },
    });
    probe = await LearningProbe.open(host.as('reviewer'));
  });
  afterAll(async () => {
    await host?.stop();
    model.close();
  });

  it('leave no trace in what runs do, as long as nothing is applied', async () => {
    const before = await probe.look();
    const steps = stepsOf(host);
    const history = fc.array(
      fc.record({
        proposed: fc.nat(probe.proposed.length - 1),
        steps: fc.array(fc.constantFrom(...Object.keys(steps)), { maxLength: 5 }),
      }),
      { minLength: 1, maxLength: 4 },
    );
    await fc.assert(
      fc.asyncProperty(history, async (proposals) => {
        for (const { proposed, steps: names } of proposals) {
          const { kind, artifact } = probe.proposed[proposed]!;
          const { id } = await drafted(host.as('editor'), kind, artifact);
          for (const name of names) await steps[name]!({ id, artifact });
        }
        expect(await probe.look()).toEqual(before);
      }),
      { numRuns: HISTORIES, seed: 96, endOnFailure: true },
    );
  });
});

/** What can be done with a proposal without applying it, or so that nothing is left of it. What is refused is refused. */
function stepsOf(host: TestHost): Record<string, Step> {
  const [editor, reviewer] = [host.as('editor'), host.as('reviewer')];
  return {
    revise: ({ id, artifact }) => revise(editor, id, { artifact: { ...artifact }, title: 'again' }),
    spoil: ({ id }) => revise(editor, id, { artifact: { templateId: 'spoilt' } }),
    reject: ({ id }) => editor.post(`${PROPOSALS}/${id}/reject`, { reason: 'no' }),
    archive: ({ id }) => editor.request('DELETE', `${PROPOSALS}/${id}`),
    forbidden: ({ id }) => apply(editor, id),
    foreign: ({ id }) => apply(host.as('other'), id),
    open: ({ id }) => open(reviewer, id),
    refuse: async ({ id }) => {
      await open(reviewer, id);
      const { runId, artifactHash } = await evidenceOf(editor, id);
      await resolve(host.as('owner'), runId, 'review', { decision: 'rejected', artifactHash });
    },
    undo: async ({ id }) => {
      const { body } = await apply(reviewer, id);
      const ref = body.installedArtifactRef;
      if (ref !== undefined) await reviewer.request('DELETE', `${INSTALLED}/${ref}`);
    },
  };
}

/** Asks for agreement to one's own work, which is not enough. */
async function open(reviewer: Api, id: string): Promise<void> {
  await rewrite(reviewer, id);
  await apply(reviewer, id);
}
