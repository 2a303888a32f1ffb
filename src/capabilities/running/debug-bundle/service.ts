import { snapshotOf } from '../../../engine/run/snapshot.ts';
import { NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { NodeStateDoc } from '../../../protocol/running/runs.ts';
import type { RunRow } from '../../../store/log.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { REDACTED } from '../../../system/redaction.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import { logPages } from '../../log-pages.ts';
import type { Caller } from '../../request.ts';
import { bytesOf, type Survey, surveyLog } from './survey.ts';

export type DebugBundleService = ReturnType<typeof debugBundleService>;

/** Whoever keeps what people think of runs. Redacted when it was written down. */
export interface AnnotationSource {
  annotationsOf(caller: Caller, runId: string): Promise<readonly object[]>;
}

const BUNDLE_VERSION = '1';
export const BUNDLE_BYTES_MAX = 8_000_000;
/** Of the whole; what is left is for events. */
const SPAN_BYTES_MAX = 2_000_000;
const ANNOTATION_BYTES_MAX = 1_000_000;

/** A bundle in pieces, as they are sent. */
export interface Bundle {
  readonly pieces: () => AsyncIterable<string>;
}

export function debugBundleService(
  { runtime, settings }: Host,
  /** Services that are built later stand here by the time somebody asks. */
  services: { readonly feedback?: AnnotationSource },
) {
  return {
    /**
     * Everything about a run that helps to find out what went wrong with it. The log is read twice, first to know
     * what it comes to and then to send it, so that no more than a page of it is ever in memory.
     */
    async bundle(caller: Caller, runId: string, eventsMax: number): Promise<Bundle | Refusal> {
      const row = await runtime.reader.row(caller.subject, runId);
      if (!row) return NOT_FOUND;
      const survey = await surveyLog(runtime, row);
      const annotations = await services.feedback?.annotationsOf(caller, runId);
      return assemble(row, survey, annotations, eventsMax);
    },
  };

  function assemble(
    row: RunRow,
    survey: Survey,
    annotations: readonly object[] | undefined,
    eventsMax: number,
  ): Bundle {
    const spans = fitting(survey.spans.list, SPAN_BYTES_MAX);
    const notes = annotations && fitting(annotations, ANNOTATION_BYTES_MAX);
    const eventCount = row.sequence + 1;
    const facts = {
      bundleVersion: BUNDLE_VERSION,
      generatedAt: new Date(runtime.clock.now()).toISOString(),
      host: { name: 'capstan', version: settings.version, vendor: 'Capstan' },
      run: shownRun(survey),
      metrics: { openwopCost: survey.cost, nodeCount: survey.nodeCount, eventCount },
      redactionApplied: true,
      redactionMode: 'mask',
    };
    const lists = `"spans":[${spans.texts}]${notes ? `,"annotations":[${notes.texts}]` : ''}`;
    const head = `${JSON.stringify(facts).slice(0, -1)},${lists}`;
    const bytesMax = BUNDLE_BYTES_MAX - Buffer.byteLength(head) - TAIL_BYTES_MAX;
    const reason =
      (survey.eventBytes > bytesMax && 'events_truncated_to_size_cap') ||
      (eventCount > eventsMax && 'events_truncated_to_max_events') ||
      ((spans.isCut || survey.spans.isCut) && 'spans_truncated_to_size_cap') ||
      (notes?.isCut && 'annotations_truncated_to_size_cap');
    const truncation = reason ? { truncated: true, truncatedReason: reason } : { truncated: false };
    return {
      async *pieces() {
        yield `${head},${JSON.stringify(truncation).slice(1, -1)},"events":[`;
        yield* eventTexts(row, { eventsMax, bytesMax });
        yield ']}';
      },
    };
  }

  /** The events from the first on, as many as there is room for. */
  async function* eventTexts(
    row: RunRow,
    { eventsMax, bytesMax }: { eventsMax: number; bytesMax: number },
  ): AsyncGenerator<string> {
    let bytesLeft = bytesMax;
    for await (const page of logPages(runtime, row)) {
      const shown = page.filter((event) => {
        bytesLeft -= bytesOf(event);
        return bytesLeft >= 0 && event.sequence < eventsMax;
      });
      const isFirst = page[0]!.sequence === 0;
      if (shown.length > 0) yield (isFirst ? '' : ',') + shown.map(({ body }) => body).join(',');
      if (shown.length < page.length) return;
    }
  }
}

/** What is said of truncation and what closes the document. */
const TAIL_BYTES_MAX = 200;

/** The run without a value that a caller put in: whoever is handed a bundle need not be trusted with those. */
function shownRun({ run }: Survey): JsonObject {
  const snapshot = snapshotOf(run, sha256Hex);
  const { runId, workflowId, status, owner, currentNodeId, startedAt, endedAt = null, error = null } = snapshot;
  const declared = run.plan.definition.variables.filter(({ name }) => Object.hasOwn(run.variables, name));
  return {
    runId,
    workflowId,
    status,
    owner,
    currentNodeId,
    startedAt,
    endedAt,
    error,
    inputs: {},
    variables: Object.fromEntries(declared.map(({ name }) => [name, REDACTED])),
    nodeStates: withoutOutputs(snapshot.nodeStates ?? {}),
    engineVersion: snapshot.engineVersion,
    eventLogSchemaVersion: snapshot.eventLogSchemaVersion,
  };
}

function withoutOutputs(nodeStates: Record<string, NodeStateDoc>): JsonObject {
  return Object.fromEntries(Object.entries(nodeStates).map(([nodeId, { outputs: _, ...state }]) => [nodeId, state]));
}

/** As many values as fit, as the inside of a JSON list. */
function fitting(values: readonly object[], bytesMax: number): { readonly texts: string; readonly isCut: boolean } {
  const texts: string[] = [];
  let bytes = 0;
  for (const value of values) {
    const text = JSON.stringify(value);
    bytes += Buffer.byteLength(text) + 1;
    if (bytes > bytesMax) break;
    texts.push(text);
  }
  return { texts: texts.join(','), isCut: texts.length < values.length };
}
