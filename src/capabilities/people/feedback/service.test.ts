import { afterAll, describe, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import type { Annotation, AnnotationCreate } from '../../../protocol/people/annotations.ts';
import { perform } from '../../../runtime/change.ts';
import { RunService } from '../../running/runs/service.ts';
import { annotateSeam } from './annotate-seam.ts';
import { AnnotationReactions } from './door.ts';
import { reviewInboxSource } from './inbox.ts';
import { FEEDBACK_TABLES, forgetFeedback } from './records.ts';
import { FeedbackService } from './service.ts';

const host = await openCapabilityHost({ tables: FEEDBACK_TABLES });
afterAll(() => host.close());

const { runtime } = host;
const published: string[] = [];
const feedback = new FeedbackService(host, {
  audit: { record: () => [] },
  feed: { entries: () => [], wake: (tenant) => void published.push(tenant) },
});
const runs = new RunService(host, { models: [] });
const ada = callerAs('ada');
const work = workflow([node('draft')]);
await registerShared(runtime, work);

const reacted: Annotation[] = [];
host.contributed.push(
  AnnotationReactions.of((_tenant, annotation) => {
    reacted.push(annotation);
    return [];
  }),
);

async function newRun(): Promise<string> {
  const request = { workflowId: work.id, inputs: {}, configurable: {}, exclusive: false };
  const started = await perform(runtime, () => runs.create(ada, request));
  if (isRefusal(started)) throw new Error(started.message);
  await host.runToRest(started.runId);
  return started.runId;
}

const annotate = (runId: string, given: AnnotationCreate) =>
  perform(runtime, () => feedback.annotate(ada, runId, given));

describe('an annotation', () => {
  it('is published only once it is committed, and others react to it in the same unit', async () => {
    const runId = await newRun();
    const [before, reactions] = [published.length, reacted.length];
    const change = await feedback.annotate(ada, runId, { signal: { kind: 'flag' } });
    expect(published).toHaveLength(before);
    if (isRefusal(change)) throw new Error(change.message);
    await perform(runtime, async () => change);
    expect(published).toHaveLength(before + 1);
    expect(reacted.slice(reactions)).toEqual([change.result]);
    expect(await feedback.annotationsOf(ada, runId)).toEqual([change.result]);
  });

  it('of an agent is recorded once, however often the effect is retried, and nobody reacts to it', async () => {
    const runId = await newRun();
    const reactions = reacted.length;
    const seam = annotateSeam(runtime, feedback);
    const firing = { effectId: 'effect-1', tenant: 'alpha', runId, nodeId: 'draft' };
    const judgement = { kind: 'rating', rating: 1 } as const;
    const fire = () => seam({ by: { nodeId: 'draft' }, judgement }, firing as never);
    const [first, second] = await Promise.all([fire(), fire()]);
    expect(second).toEqual(first);
    expect(await fire()).toEqual(first);
    expect(await feedback.annotationsOf(ada, runId)).toHaveLength(1);
    expect(reacted).toHaveLength(reactions);
  });

  it('of a run that expires meanwhile is refused with 404', async () => {
    const runId = await newRun();
    let decisions = 0;
    const outcome = await perform(runtime, async () => {
      const change = await feedback.annotate(ada, runId, { signal: { kind: 'flag' } });
      if (++decisions === 1) {
        const run = { sql: 'DELETE FROM runs WHERE run_id = $1', params: [runId] };
        await runtime.store.commit([...forgetFeedback({ tenant: 'alpha', runId }), run]);
      }
      return change;
    });
    expect(decisions).toBe(2);
    expect(outcome).toMatchObject({ refused: 'not_found' });
  });

  it.each<[string, AnnotationCreate, string]>([
    ['without the member that its kind needs', { signal: { kind: 'rating' } }, 'signal.rating'],
    ['of an unknown node', { target: { nodeId: 'x' }, signal: { kind: 'flag' } }, 'target.nodeId'],
    ['of an unknown event', { target: { eventId: 'x' }, signal: { kind: 'flag' } }, 'target.eventId'],
  ])('%s is refused', async (_what, given, field) => {
    const runId = await newRun();
    expect(await annotate(runId, given)).toMatchObject({ refused: 'validation_error', details: { field } });
  });
});

it('a run to review is in the inbox until somebody labels it as reviewed', async () => {
  const runId = await newRun();
  const source = reviewInboxSource(runtime);
  expect(source.scope).toBe('feedback:read');
  const titles = async () =>
    (await source.list(ada, undefined, 100)).filter((entry) => entry.runId === runId).map(({ title }) => title);
  await annotate(runId, { signal: { kind: 'rating', rating: 1 } });
  expect(await titles()).toEqual([`Rated 1: ${work.id}`]);
  await annotate(runId, { signal: { kind: 'label', label: 'reviewed' } });
  expect(await titles()).toEqual([]);
});

it('tells which of some runs people corrected', async () => {
  const [corrected, rated, untouched] = [await newRun(), await newRun(), await newRun()];
  await annotate(corrected, { signal: { kind: 'correction', correction: 'Better so.' } });
  await annotate(rated, { signal: { kind: 'rating', rating: 1 } });
  const many = Array.from({ length: 1_200 }, (_, index) => `run-${index}`);
  expect(await feedback.corrected('alpha', [...many, corrected, rated, untouched])).toEqual(new Set([corrected]));
  expect(await feedback.corrected('beta', [corrected])).toEqual(new Set());
  expect(await feedback.corrected('alpha', [])).toEqual(new Set());
});
