import { isTerminalStatus } from '../protocol/running/run-status.ts';
import type { HttpAnswer } from './machine.ts';
import { Backoff, RESTART_RETRY } from './retry.ts';
import { parseEvents, type ServerSentEvent } from './server-sent-events.ts';
import { type Request, type Transport, unreachable } from './transport.ts';

/** Hosts send keep-alives every few seconds, so a connection that is silent for this long is dead. */
const SILENCE_MAX_MS = 60_000;

/** Called whenever the host closes the stream; returns true when no more messages will come. */
type IsFinished = (last: ServerSentEvent | undefined) => Promise<boolean>;

/**
 * Yields the messages of a stream and reconnects as often as needed; each connection continues after the last message
 * (`Last-Event-ID`). A restarting host also closes its streams cleanly, so a clean close alone does not end the stream.
 */
export async function* resumableStream(
  transport: Transport,
  request: Omit<Request, 'retry'> & { readonly lastEventId?: string | undefined },
  isFinished: IsFinished,
): AsyncGenerator<ServerSentEvent, void, undefined> {
  const { signal } = request;
  const backoff = new Backoff(transport.machine, RESTART_RETRY, signal);
  let { lastEventId } = request;
  let last: ServerSentEvent | undefined;
  for (;;) {
    const connection = new AbortController();
    try {
      const response = await transport.open({
        ...request,
        headers: {
          ...request.headers,
          accept: 'text/event-stream',
          ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
        },
        signal: signal ? AbortSignal.any([signal, connection.signal]) : connection.signal,
        retry: RESTART_RETRY,
      });
      if (lastEventId === undefined) request.onOpen?.();
      // An endless feed sends its start position as a header, for readers that lose it before the first message.
      lastEventId ??= response.headers.get('last-event-id') ?? undefined;
      for await (const message of parseEvents(withSilenceTimeout(transport, response, connection))) {
        backoff.reset();
        last = message;
        lastEventId = message.id ?? lastEventId;
        yield message;
      }
      if (await isFinished(last)) return;
      await backoff.after(unreachable(transport.url, new Error('the stream ended before the run did')));
    } catch (error) {
      await backoff.after(
        connection.signal.aborted ? unreachable(transport.url, new Error('the connection timed out')) : error,
      );
    } finally {
      connection.abort();
    }
  }
}

/** Yields the bytes of a response and aborts the connection after too long a silence. */
async function* withSilenceTimeout(
  { machine, url }: Transport,
  { body }: HttpAnswer,
  connection: AbortController,
): AsyncGenerator<Uint8Array> {
  const reader = body!.getReader();
  const startTimeout = (): (() => void) => machine.after(SILENCE_MAX_MS, () => connection.abort());
  let stopTimeout = startTimeout();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      stopTimeout();
      if (done) return;
      stopTimeout = startTimeout();
      yield value;
    }
  } catch (error) {
    throw unreachable(url, error);
  } finally {
    stopTimeout();
  }
}

/**
 * Ends a stream with the last event of the run, or when a connection that was opened after the end of the run is
 * closed: the last event may not be part of the stream mode.
 */
export function untilRunEnds(statusOf: () => Promise<string>): IsFinished {
  let hadEnded = false;
  return async (last) => {
    if (hadEnded || (last && isEndOfRun(last.event))) return true;
    hadEnded = isTerminalStatus(await statusOf());
    return false;
  };
}

/** Returns true for `run.completed` and the other events that end a run. */
export function isEndOfRun(eventType: string): boolean {
  return eventType.startsWith('run.') && isTerminalStatus(eventType.slice('run.'.length));
}
