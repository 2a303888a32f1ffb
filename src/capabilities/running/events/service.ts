import { isTerminalStatus } from '../../../protocol/running/runs.ts';
import type { RunRow, StoredEvent } from '../../../store/log.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { Caller } from '../../request.ts';
import { follow } from './follow.ts';
import { type StreamRequest, streamFrames } from './stream.ts';

export type EventService = ReturnType<typeof eventService>;

export interface Polled {
  readonly row: RunRow;
  readonly events: readonly StoredEvent[];
  /** The run is over and these are its last events. */
  readonly isComplete: boolean;
}

const JSON_PAGE = 500;

export function eventService(host: Host) {
  const { reader } = host.runtime;
  return {
    row: (caller: Caller, runId: string): Promise<RunRow | undefined> => reader.row(caller.subject, runId),

    stream: (row: RunRow, request: StreamRequest, signal: AbortSignal): AsyncIterable<string> =>
      streamFrames(host, row, request, signal),

    /** What is new after a sequence; waits for it for a while if there is nothing. */
    async poll(row: RunRow, after: number, waitMs: number, signal: AbortSignal): Promise<Polled> {
      let events: StoredEvent[] = [];
      for await (const batch of follow(host, row, { after, signal, patienceMs: waitMs })) {
        events = batch;
        break;
      }
      const now = (await reader.row({ tenant: row.tenant }, row.run_id)) ?? row;
      const last = events.at(-1)?.sequence ?? after;
      return { row: now, events, isComplete: isTerminalStatus(now.status) && last >= now.sequence };
    },

    /** The whole log as one JSON document, in pieces. */
    async *document(row: RunRow): AsyncGenerator<string> {
      yield '{"events":[';
      for (let after = -1; ; ) {
        const events = await reader.events(row, after, JSON_PAGE);
        if (events.length > 0) yield (after < 0 ? '' : ',') + events.map(({ body }) => body).join(',');
        if (events.length < JSON_PAGE) break;
        after = events.at(-1)!.sequence;
      }
      yield ']}';
    },
  };
}
