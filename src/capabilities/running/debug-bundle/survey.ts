import { Spans } from '../../../engine/inspection/spans.ts';
import { maskKnown } from '../../../engine/masking/learning.ts';
import { type Cost, Spending } from '../../../engine/models/spending.ts';
import { apply } from '../../../engine/run/fold.ts';
import type { Run } from '../../../engine/run/run.ts';
import type { RunEvent } from '../../../protocol/running/events.ts';
import type { Span } from '../../../protocol/running/inspection.ts';
import { learnStored } from '../../../runtime/recording.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { traceOf } from '../../../runtime/tracing.ts';
import type { RunRow, StoredEvent } from '../../../store/log.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { logPages } from '../../log-pages.ts';

const SPANS_MAX = 4_000;

/** The totals of a log. Its size does not grow with the log, but for a bounded number of spans. */
export interface Survey {
  readonly run: Run;
  readonly spans: readonly Span[];
  /** Whether spans were omitted because there are too many. */
  readonly isSpanListCut: boolean;
  readonly nodeCount: number;
  readonly cost: Cost | null;
  /** Size of all events as elements of a JSON array. */
  readonly eventBytes: number;
}

/** Reads a log once from beginning to end. */
export async function surveyLog(runtime: Runtime, row: RunRow): Promise<Survey> {
  const { run } = await runtime.reader.load(row, -1);
  const list: Span[] = [];
  let started = 0;
  const onStart = (span: Span): void => {
    if (started++ < SPANS_MAX) list.push(span);
  };
  const trace = traceOf(runtime, run.facts);
  const spans = new Spans(run.facts, { digest: sha256Hex, plan: run.plan, trace, onStart });
  const spending = new Spending();
  const nodeIds = new Set<string>();
  let eventBytes = 0;
  for await (const page of logPages(runtime, row)) {
    for (const stored of page) {
      const event = learnStored(run, stored);
      apply(run, event);
      spans.add(run.known ? ({ ...event, payload: maskKnown(run.known, event.payload) } as RunEvent) : event);
      if (event.type === 'provider.usage') spending.add(event.payload);
      const nodeId = nodeIdOf(event);
      if (nodeId !== undefined) nodeIds.add(nodeId);
      eventBytes += bytesOf(stored);
    }
  }
  const isSpanListCut = started > SPANS_MAX;
  return { run, spans: list, isSpanListCut, nodeCount: nodeIds.size, cost: spending.cost, eventBytes };
}

function nodeIdOf({ nodeId, payload }: RunEvent): string | undefined {
  return nodeId ?? (payload as { nodeId?: string } | null)?.nodeId;
}

/** Size of an event with the comma after it. */
export function bytesOf({ body }: StoredEvent): number {
  return Buffer.byteLength(body) + 1;
}
