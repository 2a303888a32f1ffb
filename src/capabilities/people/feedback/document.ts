import type { Annotation, AnnotationCreate } from '../../../protocol/people/annotations.ts';
import type { RunRow } from '../../../store/log.ts';
import { redactText, redactValue } from '../../../system/redaction.ts';
import type { AnnotationRow } from './records.ts';

/** Who annotates: a caller, or an agent inside a run. */
export interface Author {
  readonly principalRef: string;
  readonly isAgent: boolean;
}

/** What a new annotation has besides what its author wrote. */
export interface AnnotationFacts {
  readonly annotationId: string;
  readonly runId: string;
  readonly author: Author;
  readonly at: number;
}

/** The annotation as it is stored and read, with secrets redacted from everything its author wrote. */
export function annotationOf({ target, signal, note }: AnnotationCreate, facts: AnnotationFacts): Annotation {
  const { annotationId, runId, author, at } = facts;
  return {
    annotationId,
    target: { runId, ...target },
    signal: redactValue(signal),
    actor: { principalRef: author.principalRef },
    ...(note === undefined ? {} : { note: redactText(note) }),
    createdAt: new Date(at).toISOString(),
  };
}

/** The row of an annotation. */
export function rowOf(annotation: Annotation, run: RunRow, { author, at }: AnnotationFacts): AnnotationRow {
  const { annotationId, target, signal } = annotation;
  return {
    annotation_id: annotationId,
    tenant: run.tenant,
    workspace: run.workspace,
    run_id: run.run_id,
    workflow_id: run.workflow_id,
    node_id: target.nodeId ?? null,
    target: targetKey(target),
    author: authorKey(author),
    kind: signal.kind,
    rating: signal.kind === 'rating' ? signal.rating! : null,
    created_at: at,
    body: JSON.stringify(annotation),
  };
}

/** The part of a run that an annotation is about, as a key: annotations of the same part have the same key. */
export function targetKey({ eventId, nodeId }: Annotation['target']): string {
  return JSON.stringify([eventId ?? null, nodeId ?? null]);
}

/** The part of a run that a key stands for. */
export function targetFrom(key: string): Pick<Annotation['target'], 'eventId' | 'nodeId'> {
  const [eventId, nodeId] = JSON.parse(key) as (string | null)[];
  return { ...(eventId ? { eventId } : {}), ...(nodeId ? { nodeId } : {}) };
}

/** Identifies an author: a rating replaces earlier ones with the same key. An agent never has the key of a person. */
export function authorKey({ principalRef, isAgent }: Author): string {
  return `${isAgent ? 'agent' : 'principal'}:${principalRef}`;
}
