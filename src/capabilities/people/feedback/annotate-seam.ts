import { maskOutputs } from '../../../engine/masking/mask.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import type { AnnotationCreate } from '../../../protocol/people/annotations.ts';
import { perform } from '../../../runtime/change.ts';
import type { AgentJudgement, SeamDrivers } from '../../../runtime/effects/seams.ts';
import { NodeFailure } from '../../../runtime/node-type.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { Annotating, FeedbackService } from './service.ts';

const ID_DIGITS = 22;

/**
 * Lets a node annotate a run that its own run may see, itself included. The id of the annotation is derived from the
 * effect's, so a retry changes nothing. Outputs that the definition masks are masked in the annotation, too.
 */
export function annotateSeam(runtime: Runtime, feedback: Pick<FeedbackService, 'record'>): SeamDrivers['annotate'] {
  const { reader, plans } = runtime;
  return async ({ by, judgement }, { effectId, tenant, runId }) => {
    const run = await reader.row({ tenant }, runId);
    if (!run) throw failure('not_found', 'The run no longer exists.');
    const plan = await plans.pinned(run.workflow_owner, run.workflow_id, run.workflow_version);
    const shown = maskOutputs(plan, by.nodeId, judgement, sha256Hex) as AgentJudgement;
    const annotating: Annotating = {
      visibility: { tenant, workspace: run.workspace ?? undefined },
      author: { principalRef: by.agentId ?? `${run.workflow_id}/${by.nodeId}`, isAgent: true },
      runId: shown.runId ?? runId,
      annotationId: `ann-${sha256Hex(effectId).slice(0, ID_DIGITS)}`,
    };
    const outcome = await perform(runtime, () => feedback.record(annotating, annotationFrom(shown)));
    if (isRefusal(outcome)) throw failure(outcome.refused, outcome.message);
    return { annotationId: outcome.annotationId };
  };
}

/** Members without a value are left out. */
function annotationFrom({ kind, rating, label, correction, note, eventId, nodeId }: AgentJudgement): AnnotationCreate {
  return JSON.parse(
    JSON.stringify({ target: { eventId, nodeId }, signal: { kind, rating, label, correction }, note }),
  ) as AnnotationCreate;
}

function failure(code: string, message: string): NodeFailure {
  return new NodeFailure({ code, message, retryable: false });
}
