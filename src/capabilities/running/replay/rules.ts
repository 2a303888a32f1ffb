import { type Refusal, refuse } from '../../../protocol/errors.ts';
import type { TraceContext } from '../../../protocol/format/trace.ts';
import type { ForkMode } from '../../../protocol/running/forks.ts';
import { isManagement } from '../../../protocol/running/management.ts';
import type { Overlay } from '../../../runtime/fork/create.ts';
import type { RunRow } from '../../../store/log.ts';
import type { Caller } from '../../request.ts';

/** How a run is forked. */
export interface ForkOptions {
  readonly mode: ForkMode;
  /** Sequence of the first event that the fork does not share with its source. */
  readonly fromSeq: number;
  /** What the fork has instead of its source's inputs, configuration and version. */
  readonly overlay: Overlay & { readonly workflowVersion?: number };
  /** The trace of the request, which the fork continues. */
  readonly trace?: TraceContext | undefined;
}

/** Refuses a caller who may start runs but not read them: a fork shows the history of its source. */
export function checkMayRead({ scopes }: Caller): Refusal | undefined {
  if (scopes.has('runs:read')) return undefined;
  return refuse('forbidden', 'Forking a run also needs the scope runs:read.', { scopeRequired: 'runs:read' });
}

/** Refuses a branch without a starting point, and a replay that differs from its source. */
export function checkMode(body: { mode: string; fromSeq?: number; runOptionsOverlay?: object }): Refusal | undefined {
  if (body.mode === 'branch' && body.fromSeq === undefined) {
    const message = 'A branch needs fromSeq, the sequence of the first event that differs from the source.';
    return refuse('validation_error', message, { field: 'fromSeq' });
  }
  if (body.mode === 'replay' && Object.keys(body.runOptionsOverlay ?? {}).length > 0) {
    const message = 'A replay does not accept runOptionsOverlay. Use the mode branch to change options.';
    return refuse('validation_error', message, { field: 'runOptionsOverlay' });
  }
  return undefined;
}

/** Refuses a source that cannot be forked there. */
export function checkSource(source: RunRow, fromSeq: number): Refusal | undefined {
  if (isManagement(source.workflow_id)) return refuse('conflict', 'Runs of the host itself cannot be forked.');
  if (fromSeq <= source.sequence + 1) return undefined;
  const message = `The last event of the source run has sequence ${source.sequence}.`;
  const details = { field: 'fromSeq', lastSequence: source.sequence };
  return { ...refuse('validation_error', message, details), status: 422 };
}

/** The refusal of a version whose definition lacks a node that the shared history mentions. */
export function refuseUnknownNode(nodeId: string): Refusal {
  const name = JSON.stringify(nodeId);
  const message = `The history has events of the node ${name}, which that version does not have. Choose a smaller fromSeq.`;
  const field = 'runOptionsOverlay.workflowVersion';
  return { ...refuse('validation_error', message, { field, nodeId }), status: 422 };
}

/** The refusal of a version that the workflow does not have. */
export function refuseUnknownVersion(): Refusal {
  const field = 'runOptionsOverlay.workflowVersion';
  return { ...refuse('validation_error', 'The workflow has no such version.', { field }), status: 422 };
}
