import type { Runtime } from '../../../runtime/runtime.ts';
import type { RunRow, StoredEvent, Visibility } from '../../../store/log.ts';
import type { Caller } from '../../request.ts';
import { firstNews } from './follow.ts';
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
    const polled = await firstNews(this.#runtime, run, { after, ...waiting, page: POLL_PAGE });
    return polled && { ...polled, events: firstPage(polled.events) };
  }

  /** The whole log as one JSON document, in pieces. */
  async *document(row: RunRow): AsyncGenerator<string> {
    yield '{"events":[';
    for (let after = -1; ; ) {
      const events = await this.#runtime.reader.events(row, after, JSON_PAGE);
      if (events.length > 0) yield (after < 0 ? '' : ',') + events.map(({ body }) => body).join(',');
      if (events.length < JSON_PAGE) break;
      after = events.at(-1)!.sequence;
    }
    yield ']}';
  }
}

/** The first events, one at least, that fit into one answer. */
function firstPage(events: readonly StoredEvent[]): StoredEvent[] {
  const page: StoredEvent[] = [];
  let characters = 0;
  for (const event of events) {
    characters += event.body.length;
    if (page.length > 0 && characters > POLL_CHARACTERS) break;
    page.push(event);
  }
  return page;
}
