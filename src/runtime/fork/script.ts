import type { Fork } from '../../engine/run/run.ts';
import type { NewEvent, RunEvent } from '../../protocol/running/events.ts';
import { traitsOf } from '../event-traits.ts';
import { decodeEvent } from '../recording.ts';
import type { Subject } from '../run-row.ts';
import type { Runtime } from '../runtime.ts';

/** What a replay goes by: the events of its source, from where the replay begins to where the source had come. */
export class Script {
  readonly #events: readonly RunEvent[];
  readonly #byNode: ReadonlyMap<string | undefined, readonly RunEvent[]>;
  #position = 0;

  constructor(events: readonly RunEvent[]) {
    this.#events = events;
    this.#byNode = Map.groupBy(this.#events, nodeOf);
  }

  /** Without its source a replay has an empty script. */
  static async load(runtime: Runtime, { tenant }: Subject, fork: Fork): Promise<Script> {
    const row = await runtime.reader.row({ tenant }, fork.sourceRunId);
    const events: RunEvent[] = [];
    for (let after = fork.fromSeq - 1; row && after < fork.throughSeq; ) {
      const page = await runtime.reader.events(row, after);
      if (page.length === 0) break;
      events.push(...page.filter(({ sequence }) => sequence <= fork.throughSeq).map(decodeEvent));
      after = page.at(-1)!.sequence;
    }
    return new Script(events);
  }

  /** What the source recorded next. */
  get wanted(): RunEvent | undefined {
    return this.#events[this.#position];
  }

  goTo(position: number): void {
    this.#position = position;
  }

  advance(): void {
    this.#position++;
  }

  /** When the call of a node that is under way came to something; undefined if it never did. */
  endOf(nodeId: string): number | undefined {
    const from = this.wanted?.sequence ?? Number.POSITIVE_INFINITY;
    const end = this.#byNode.get(nodeId)?.find(({ sequence, type }) => sequence >= from && isOutcome(type));
    return end && Date.parse(end.timestamp);
  }

  /** Everything that an attempt at a node left in the log, if it came to an end. */
  recordOf(nodeId: string, attempt: number): NewEvent[] | undefined {
    let record: RunEvent[] = [];
    // An attempt that has no beginning here is the one that was under way when the replay began.
    let current: number | undefined;
    for (const event of this.#byNode.get(nodeId) ?? []) {
      if (event.type === 'node.started') {
        current = event.payload.attempt;
        record = [];
        continue;
      }
      record.push(event);
      if (traitsOf(event.type).call === 'ended' && (current ?? attempt) === attempt) return record.map(asNew);
    }
    return undefined;
  }
}

/** A child that was dispatched is no outcome yet: the call goes on when the child is over. */
function isOutcome(type: string): boolean {
  const { call } = traitsOf(type);
  return call === 'ended' || call === 'suspended';
}

/** The node that an event is about. */
export function nodeOf({ nodeId, payload }: RunEvent): string | undefined {
  return nodeId ?? (payload as { readonly nodeId?: string }).nodeId;
}

/** The event as something to record anew. What caused it has another id here. */
export function asNew({ type, payload, nodeId }: RunEvent): NewEvent {
  return { type, payload, ...(nodeId === undefined ? {} : { nodeId }) } as NewEvent;
}
