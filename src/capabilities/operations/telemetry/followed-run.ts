import { Spans } from '../../../engine/inspection/spans.ts';
import type { Run } from '../../../engine/run/run.ts';
import type { RunTrace } from '../../../protocol/format/trace.ts';
import type { RunEvent } from '../../../protocol/running/events.ts';
import type { Span } from '../../../protocol/running/inspection.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { timeOf } from './times.ts';

/** What a followed run is connected to. */
interface Connections {
  /** Reads the events of the log from `from` up to but without `to`. */
  readonly read: (from: number, to: number) => Promise<readonly RunEvent[]>;
  readonly send: (span: Span) => void;
}

/** A span that ended with an event that this host has not seen being committed. */
interface UnsentSpan {
  readonly span: Span;
  readonly sequence: number;
}

/** What a dead host may not have sent: the spans of its last seconds. */
const REPEATED_MS = 60_000;
const UNSENT_MAX = 1_000;

/**
 * Follows the log of one run and sends the spans that end with events which this host has committed: each event is
 * committed by one host, so each span is sent once. Events of other hosts are read from the log when there is a gap.
 *
 * A host that takes a run over from a dead one sends the spans of that one's last seconds again, because it may not
 * have got around to it. They are the same spans, with the same ids.
 */
export class FollowedRun {
  readonly #spans: Spans;
  readonly #connections: Connections;
  readonly #ownFrom: number;
  readonly #backlog: (readonly RunEvent[])[] = [];
  #isReading = false;
  /** Sequence of the next event. */
  #next = 0;
  #isOwn = false;
  #sequence = -1;
  #lastAt = 0;
  #unsent: UnsentSpan[] = [];

  constructor({ facts, plan }: Run, trace: RunTrace, connections: Connections) {
    const { runId, workflowId, owner, fork, parent } = facts;
    this.#connections = connections;
    // What a fork has copied happened to its source.
    this.#ownFrom = fork?.fromSeq ?? 0;
    this.#spans = new Spans(
      { runId, workflowId, owner, fork, parent },
      { digest: sha256Hex, plan, trace, onEnd: (span) => this.#ended(span) },
    );
  }

  /** Takes what this host has committed. Resolves once it is worked off, if the log has to be read first. */
  take(events: readonly RunEvent[]): Promise<void> | undefined {
    this.#backlog.push(events);
    if (this.#isReading) return undefined;
    if (events[0]!.sequence > this.#next) return this.#catchUp();
    this.#workOff();
    return undefined;
  }

  async #catchUp(): Promise<void> {
    this.#isReading = true;
    try {
      while (this.#backlog.length > 0) {
        const { sequence } = this.#backlog[0]![0]!;
        if (sequence > this.#next) {
          for (const event of await this.#connections.read(this.#next, sequence)) this.#add(event, false);
        }
        this.#workOff();
      }
    } finally {
      this.#isReading = false;
    }
  }

  /** Adds the committed events up to the next gap. */
  #workOff(): void {
    while (this.#backlog.length > 0 && this.#backlog[0]![0]!.sequence <= this.#next) {
      for (const event of this.#backlog.shift()!) {
        if (event.sequence < this.#next) this.#sendUnsent(({ sequence }) => sequence === event.sequence);
        else this.#add(event, true);
      }
    }
  }

  #add(event: RunEvent, isOwn: boolean): void {
    if (isOwn && event.type === 'run.resumed' && event.payload.recovered) {
      this.#sendUnsent(({ span }) => Date.parse(span.endedAt!) >= this.#lastAt - REPEATED_MS);
    }
    this.#isOwn = isOwn;
    this.#sequence = event.sequence;
    this.#spans.add(event);
    this.#next = event.sequence + 1;
    this.#lastAt = timeOf(event.timestamp);
  }

  #ended(span: Span): void {
    if (this.#sequence < this.#ownFrom) return;
    if (this.#isOwn) this.#connections.send(span);
    else this.#unsent.push({ span, sequence: this.#sequence });
    if (this.#unsent.length > UNSENT_MAX) this.#unsent.shift();
  }

  #sendUnsent(isMeant: (unsent: UnsentSpan) => boolean): void {
    const meant = this.#unsent.filter(isMeant);
    this.#unsent = this.#unsent.filter((unsent) => !isMeant(unsent));
    for (const { span } of meant) this.#connections.send(span);
  }
}
