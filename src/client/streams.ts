import { isTerminalStatus } from '../protocol/running/run-status.ts';
import { Backoff, PATIENT } from './retry.ts';
import { parseEvents, type ServerSentEvent } from './server-sent-events.ts';
import { type Request, type Transport, unreachable } from './transport.ts';

/** Hosts send something at least every few seconds. A connection that is silent for this long is dead. */
const SILENCE_MAX_MS = 60_000;

/** Whether nothing more will come, asked each time that the host has ended the stream in good order. */
export type IsOver = (last: ServerSentEvent | undefined) => Promise<boolean>;

/**
 * Messages of a stream, across as many connections as it takes: each one begins behind the last message of the one
 * before. A host that restarts ends its streams in good order too, so that alone is no end.
 */
export async function* resumed(
  transport: Transport,
  request: Omit<Request, 'retry'> & { readonly lastEventId?: string | undefined },
  isOver: IsOver,
): AsyncGenerator<ServerSentEvent, void, undefined> {
  const { signal } = request;
  const backoff = new Backoff(transport.machine, PATIENT, signal);
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
        retry: PATIENT,
      });
      // A stream without an end says where it begins, for a reader that is cut off before the first message.
      lastEventId ??= response.headers.get('last-event-id') ?? undefined;
      for await (const message of parseEvents(watched(transport, response, connection))) {
        backoff.reset();
        last = message;
        lastEventId = message.id ?? lastEventId;
        yield message;
      }
      if (await isOver(last)) return;
      await backoff.after(unreachable(transport.url, new Error('the stream ended before the run did')));
    } catch (error) {
      await backoff.after(connection.signal.aborted ? unreachable(transport.url, new Error('it fell silent')) : error);
    } finally {
      connection.abort();
    }
  }
}

/** The bytes of an answer, for as long as there are some now and then. */
async function* watched(
  { machine, url }: Transport,
  { body }: Response,
  connection: AbortController,
): AsyncGenerator<Uint8Array> {
  const reader = body!.getReader();
  const watch = (): (() => void) => machine.after(SILENCE_MAX_MS, () => connection.abort());
  let stopWatching = watch();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      stopWatching();
      if (done) return;
      stopWatching = watch();
      yield value;
    }
  } catch (error) {
    throw unreachable(url, error);
  } finally {
    stopWatching();
  }
}

/**
 * A run's stream is over with the run's last event, or once a connection that was opened after the run had ended has
 * nothing more to give.
 */
export function untilRunEnds(statusOf: () => Promise<string>): IsOver {
  let hadEnded = false;
  return async (last) => {
    if (hadEnded || (last && isEndOfRun(last.event))) return true;
    hadEnded = isTerminalStatus(await statusOf());
    return false;
  };
}

/** `run.completed` and its like: the status that the run ends with is in the name. */
export function isEndOfRun(eventType: string): boolean {
  return eventType.startsWith('run.') && isTerminalStatus(eventType.slice('run.'.length));
}
