import type { Runtime } from '../../../runtime/runtime.ts';
import type { RunRow, Visibility } from '../../../store/log.ts';
import type { Caller } from '../../request.ts';
import { firstBatch } from './follow.ts';
import { firstOf, LogPages } from './log-pages.ts';
import type { PolledEvents, Polling } from './polling.ts';
import { type StreamRequest, streamFrames } from './stream.ts';

const JSON_PAGE = 50;
/** Events that one answer to a poll has at most. */
const POLL_PAGE = 500;
/** A poll answers with about this many characters; the rest comes with the next one. */
const POLL_CHARACTERS = 1_000_000;

/** Event logs, as streams, polls and documents. */
export class EventService implements Polling {
  readonly #runtime: Runtime;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** The run, if the caller can see it. */
  row(caller: Caller, runId: string): Promise<RunRow | undefined> {
    return this.#runtime.reader.row(caller.subject, runId);
  }

  /** Server-sent events of a run, until it ends or the signal aborts. */
  stream(row: RunRow, request: StreamRequest, signal: AbortSignal): AsyncIterable<string> {
    return streamFrames(this.#runtime, row, request, signal);
  }

  async poll(
    { tenant, workspace }: Visibility,
    runId: string,
    after: number,
    waiting: { readonly waitMs: number; readonly signal: AbortSignal },
  ): Promise<PolledEvents | undefined> {
    const run = { tenant, workspace, runId };
    const polled = await firstBatch(this.#runtime, run, { after, ...waiting, page: POLL_PAGE });
    return polled && { ...polled, events: firstOf(polled.events, POLL_CHARACTERS) };
  }

  /** The whole log as one JSON document, in pieces. */
  async *document(row: RunRow): AsyncGenerator<string> {
    yield '{"events":[';
    const pages = new LogPages((sequence, limit) => this.#runtime.reader.events(row, sequence, limit), JSON_PAGE);
    for (let after = -1, isMore = true; isMore; ) {
      const { events, isFull } = await pages.after(after);
      if (events.length > 0) yield (after < 0 ? '' : ',') + events.map(({ body }) => body).join(',');
      after = events.at(-1)?.sequence ?? after;
      isMore = isFull;
    }
    yield ']}';
  }
}
