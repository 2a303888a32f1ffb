import type { KnownValues } from '../../engine/masking/known-values.ts';
import type { Fork, Run } from '../../engine/run/run.ts';
import { defined } from '../../protocol/format/json.ts';
import type { NewEvent, RunEvent } from '../../protocol/running/events.ts';
import { traitsOf } from '../event-traits.ts';
import { isEventIdOf, learnStored } from '../recording.ts';
import type { Subject } from '../run-row.ts';
import type { Runtime } from '../runtime.ts';

/** The events of the source that a replay repeats, with a cursor: those from the fork point to the end at that time. */
export class SourceHistory {
  readonly #events: readonly RunEvent[];
  readonly #byNode: ReadonlyMap<string | undefined, readonly RunEvent[]>;
  #position = 0;

  /** What is sensitive in the source. */
  readonly known: KnownValues | undefined;

  constructor(events: readonly RunEvent[], known?: KnownValues) {
    this.known = known;
    this.#events = events;
    this.#byNode = Map.groupBy(this.#events, nodeIdOf);
  }

  /** Reads the events of the source; if it has been deleted, there are none and the replay goes on by itself. */
  static async load(runtime: Runtime, { tenant }: Subject, fork: Fork): Promise<SourceHistory> {
    const row = await runtime.reader.row({ tenant }, fork.sourceRunId);
    const events: RunEvent[] = [];
    const source: Pick<Run, 'known'> = {};
    for (let after = fork.fromSeq - 1; row && after < fork.throughSeq; ) {
      const page = await runtime.reader.events(row, after);
      if (page.length === 0) break;
      events.push(
        ...page.filter(({ sequence }) => sequence <= fork.throughSeq).map((stored) => learnStored(source, stored)),
      );
      after = page.at(-1)!.sequence;
    }
    return new SourceHistory(events, source.known);
  }

  /** The event at the cursor; undefined at the end. */
  get expected(): RunEvent | undefined {
    return this.#events[this.#position];
  }

  /** Moves the cursor to an index. */
  seek(position: number): void {
    this.#position = position;
  }

  /** Moves the cursor to the next event. */
  advance(): void {
    this.#position++;
  }

  /** When the running call of a node ended in the source; undefined if it did not end. */
  callEndedAt(nodeId: string): number | undefined {
    const from = this.expected?.sequence ?? Number.POSITIVE_INFINITY;
    const outcome = this.#byNode.get(nodeId)?.find(({ sequence, type }) => sequence >= from && isOutcome(type));
    return outcome && Date.parse(outcome.timestamp);
  }

  /** The provider of the model that a node asked last, before the event at the cursor; undefined if it asked none. */
  providerOf(nodeId: string): string | undefined {
    const before = this.expected?.sequence ?? Number.POSITIVE_INFINITY;
    const usage = this.#byNode
      .get(nodeId)
      ?.findLast(({ sequence, type }) => sequence < before && type === 'provider.usage');
    return usage?.type === 'provider.usage' ? usage.payload.provider : undefined;
  }

  /** The events of one attempt after its start, as new events; undefined if the attempt did not end in the source. */
  eventsOfAttempt(nodeId: string, attempt: number): NewEvent[] | undefined {
    let events: RunEvent[] = [];
    // Events before the first start belong to the attempt that was running at the fork point.
    let current: number | undefined;
    for (const event of this.#byNode.get(nodeId) ?? []) {
      if (event.type === 'node.started') {
        current = event.payload.attempt;
        events = [];
        continue;
      }
      events.push(event);
      if (traitsOf(event.type).call === 'ended' && (current ?? attempt) === attempt) return events.map(toNewEvent);
    }
    return undefined;
  }
}

/** Whether a call ended with this event. A dispatched child is no outcome: the node is called again after it. */
function isOutcome(type: string): boolean {
  const { call } = traitsOf(type);
  return call === 'ended' || call === 'suspended';
}

/** The id of the node that an event is about; a long id is only in the payload. */
export function nodeIdOf({ nodeId, payload }: RunEvent): string | undefined {
  return nodeId ?? (payload as { readonly nodeId?: string }).nodeId;
}

/**
 * Turns a recorded event into a new one. A cause that is an event is left out, because its id is different in another
 * run; the correlation id of an envelope is the same in every run.
 */
export function toNewEvent({ type, payload, nodeId, causationId, contentTrust, runId }: RunEvent): NewEvent {
  const cause = causationId !== undefined && isEventIdOf(runId, causationId) ? undefined : causationId;
  return { type, payload, ...defined({ nodeId, causationId: cause, contentTrust }) } as NewEvent;
}
