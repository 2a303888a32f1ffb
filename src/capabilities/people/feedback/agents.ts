import { maskOutputs } from '../../../engine/masking/mask.ts';
import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import type { Annotation, AnnotationCreate } from '../../../protocol/people/annotations.ts';
import type { AgentJudgement, SeamDrivers } from '../../../runtime/effects/seams.ts';
import { NodeFailure } from '../../../runtime/node-type.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { Judging } from './service.ts';

type Record = (judging: Judging, given: AnnotationCreate) => Promise<Annotation | Refusal>;

const ID_DIGITS = 22;

/**
 * Lets a node judge a run that its own run may see, itself included. Trying again changes nothing: the identity of the
 * effect makes the annotation's. What the definition keeps from readers is kept from those of annotations, too.
 */
export function agentSeam({ reader, plans }: Runtime, record: Record): SeamDrivers['annotate'] {
  return async ({ by, judgement }, { effectId, tenant, runId }) => {
    const run = await reader.row({ tenant }, runId);
    if (!run) throw failure('not_found', 'The run is gone.');
    const plan = await plans.pinned(run.workflow_owner, run.workflow_id, run.workflow_version);
    const shown = maskOutputs(plan, by.nodeId, judgement, sha256Hex) as unknown as AgentJudgement;
    const judging: Judging = {
      visibility: { tenant, workspace: run.workspace ?? undefined },
      author: { principalRef: by.agentId ?? `${run.workflow_id}/${by.nodeId}`, isAgent: true },
      runId: shown.runId ?? runId,
      annotationId: `ann-${sha256Hex(effectId).slice(0, ID_DIGITS)}`,
    };
    const outcome = await record(judging, annotationFrom(shown));
    if (isRefusal(outcome)) throw failure(outcome.refused, outcome.message);
    return { annotationId: outcome.annotationId };
  };
}

function annotationFrom({ kind, rating, label, correction, note, eventId, nodeId }: AgentJudgement): AnnotationCreate {
  return JSON.parse(
    JSON.stringify({ target: { eventId, nodeId }, signal: { kind, rating, label, correction }, note }),
  ) as AnnotationCreate;
}

function failure(code: string, message: string): NodeFailure {
  return new NodeFailure({ code, message, retryable: false });
}
