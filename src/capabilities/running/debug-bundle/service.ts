import { NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import type { RunRow } from '../../../store/log.ts';
import type { Host } from '../../capability.ts';
import { logPages } from '../../log-pages.ts';
import type { Feedback } from '../../people/feedback/door.ts';
import type { Caller } from '../../request.ts';
import { fitting, runOf } from './document.ts';
import { bytesOf, type Survey, surveyLog } from './survey.ts';

/** What the debug bundle needs of other capabilities. */
interface DebugBundleNeeds {
  readonly feedback: Pick<Feedback, 'annotationsOf'> | undefined;
}

const BUNDLE_VERSION = '1';
/** Limit on the size of a bundle. Parts of it are for spans and annotations; events get what is left. */
const BUNDLE_BYTES_MAX = 8_000_000;
const SPAN_BYTES_MAX = 2_000_000;
const ANNOTATION_BYTES_MAX = 1_000_000;
/** Room for the truncation members and the end of the document. */
const TAIL_BYTES_MAX = 200;

/** A bundle in pieces, as they are sent. */
interface Bundle {
  readonly pieces: () => AsyncIterable<string>;
}

/** How many events a bundle may have, and of which size. */
interface EventLimits {
  readonly eventsMax: number;
  readonly bytesMax: number;
}

/** Debug bundles of runs. */
export class DebugBundleService {
  readonly #host: Pick<Host, 'runtime' | 'version'>;
  readonly #needs: DebugBundleNeeds;

  constructor(host: Pick<Host, 'runtime' | 'version'>, needs: DebugBundleNeeds) {
    this.#host = host;
    this.#needs = needs;
  }

  /**
   * Everything about a run that helps to debug it. The log is read twice, first for its totals and then to send it, so
   * that no more than a page of it is in memory.
   */
  async bundle(caller: Caller, runId: string, eventsMax: number): Promise<Bundle | Refusal> {
    const { runtime } = this.#host;
    const row = await runtime.reader.row(caller.subject, runId);
    if (!row) return NOT_FOUND;
    const survey = await surveyLog(runtime, row);
    const annotations = await this.#needs.feedback?.annotationsOf(caller, runId);
    return this.#assemble(row, survey, annotations, eventsMax);
  }

  #assemble(row: RunRow, survey: Survey, annotations: readonly object[] | undefined, eventsMax: number): Bundle {
    const spans = fitting(survey.spans, SPAN_BYTES_MAX);
    const notes = annotations && fitting(annotations, ANNOTATION_BYTES_MAX);
    const eventCount = row.sequence + 1;
    const lists = `"spans":[${spans.texts}]${notes ? `,"annotations":[${notes.texts}]` : ''}`;
    const head = `${JSON.stringify(this.#factsOf(survey, eventCount)).slice(0, -1)},${lists}`;
    const bytesMax = BUNDLE_BYTES_MAX - Buffer.byteLength(head) - TAIL_BYTES_MAX;
    const reason =
      (survey.eventBytes > bytesMax && 'events_truncated_to_size_cap') ||
      (eventCount > eventsMax && 'events_truncated_to_max_events') ||
      ((spans.isTruncated || survey.isSpanListCut) && 'spans_truncated_to_size_cap') ||
      (notes?.isTruncated && 'annotations_truncated_to_size_cap');
    const truncation = reason ? { truncated: true, truncatedReason: reason } : { truncated: false };
    const events = () => this.#eventTexts(row, { eventsMax, bytesMax });
    return {
      async *pieces() {
        yield `${head},${JSON.stringify(truncation).slice(1, -1)},"events":[`;
        yield* events();
        yield ']}';
      },
    };
  }

  #factsOf(survey: Survey, eventCount: number): object {
    const { runtime, version } = this.#host;
    return {
      bundleVersion: BUNDLE_VERSION,
      generatedAt: new Date(runtime.clock.now()).toISOString(),
      host: { name: 'capstan', version, vendor: 'Capstan' },
      run: runOf(survey),
      metrics: { openwopCost: survey.cost, nodeCount: survey.nodeCount, eventCount },
      redactionApplied: true,
      redactionMode: 'mask',
    };
  }

  /** The events from the first on, as many as the limits allow. */
  async *#eventTexts(row: RunRow, { eventsMax, bytesMax }: EventLimits): AsyncGenerator<string> {
    let bytesLeft = bytesMax;
    for await (const page of logPages(this.#host.runtime, row)) {
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
