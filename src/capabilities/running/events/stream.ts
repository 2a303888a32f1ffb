import { snapshotOf } from '../../../engine/run/snapshot.ts';
import { type EventType, isTerminalEvent } from '../../../protocol/running/events.ts';
import type { Configurable, RunSnapshot } from '../../../protocol/running/runs.ts';
import { modeIncludes, type StreamMode } from '../../../protocol/running/stream-modes.ts';
import { applyStored } from '../../../runtime/recording.ts';
import type { HeldRun } from '../../../runtime/run-row.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { RunRow, StoredEvent } from '../../../store/log.ts';
import { Breaks } from '../../../system/breaks.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { LivePieces } from '../../request.ts';
import { type Batches, follow } from './follow.ts';

/** What a stream shows, and from where. */
export interface StreamRequest {
  readonly modes: readonly StreamMode[];
  readonly after: number;
  /** How long events are collected into a batch; 0 sends each at once. */
  readonly bufferMs: number;
  /** Whether to show notices about the run, such as new annotations. */
  readonly notices: boolean;
}

/** A frame of server-sent events. */
function frame(id: number, event: string, data: string): string {
  return `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`;
}

/** The frames of a stream: events, batches or snapshots, and notices between them. */
export function streamFrames(runtime: Runtime, row: RunRow, request: StreamRequest, signal: AbortSignal): Frames {
  const { turns } = runtime;
  const { tenant } = row;
  const { modes, bufferMs } = request;
  const isSnapshots = modes.includes('values');
  const batches = follow(runtime, row, {
    after: isSnapshots ? Math.min(request.after, row.sequence) : request.after,
    signal,
    turn: (isToRead) => (isToRead ? turns.next(tenant) : turns.shared(tenant)),
    notices: request.notices && modes.some((mode) => mode === 'updates' || mode === 'debug'),
  });
  if (isSnapshots) return valueFrames(runtime, row, request, batches);
  return bufferMs > 0 ? batchFrames(runtime, request, batches) : new EventFrames(batches, modes);
}

/** Frames of a stream, one after the other. */
type Frames = AsyncIterableIterator<string, undefined>;

/** Notices have no id, so `Last-Event-ID` stays a position in the log. */
function noticeFrames(batches: Batches): string {
  return batches
    .takeNotices()
    .map(({ event, data }) => `event: ${event}\ndata: ${data}\n\n`)
    .join('');
}

const isShown = (modes: readonly StreamMode[], { type }: StoredEvent): boolean =>
  modes.some((mode) => modeIncludes(mode, type));

/** Each event as a frame. No generator: it would keep what it gave last for as long as it waits. */
class EventFrames implements Frames, LivePieces {
  readonly #batches: Batches;
  readonly #modes: readonly StreamMode[];

  constructor(batches: Batches, modes: readonly StreamMode[]) {
    this.#batches = batches;
    this.#modes = modes;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<string, undefined>> {
    for (;;) {
      const { done, value: batch } = await this.#batches.next();
      if (done) return { done, value: undefined };
      const text = this.#framesOf(batch);
      if (text !== '') return { done: false, value: text };
    }
  }

  whenMore(tell: () => void): void {
    this.#batches.whenMore(tell);
  }

  takeNow(): string | undefined {
    const batch = this.#batches.takeNow();
    return batch && this.#framesOf(batch);
  }

  #framesOf(batch: readonly StoredEvent[]): string {
    return noticeFrames(this.#batches) + framesOf(batch, this.#modes);
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#batches.close();
    return { done: true, value: undefined };
  }
}

function framesOf(batch: readonly StoredEvent[], modes: readonly StreamMode[]): string {
  const onlyMessages = modes.length === 1 && modes[0] === 'messages';
  return batch
    .filter((event) => isShown(modes, event))
    .map((event) => (onlyMessages ? messageFrame(event) : frame(event.sequence, event.type, event.body)))
    .join('');
}

/** The members of the chunk are repeated beside the envelope, for readers that expect the chunk alone. */
function messageFrame({ sequence, body }: StoredEvent): string {
  const event = JSON.parse(body) as { payload: object };
  return frame(sequence, 'ai.message.chunk', JSON.stringify({ ...event.payload, ...event }));
}

/** Collects events into batches; an event that a person may be waiting for is sent at once. */
async function* batchFrames(
  { clock }: Runtime,
  { modes, bufferMs }: StreamRequest,
  batches: Batches,
): AsyncGenerator<string, undefined> {
  let batch: StoredEvent[] = [];
  let coming = batches.next();
  try {
    for (;;) {
      const timer = batch.length > 0 ? timeout(bufferMs) : undefined;
      const arrived = await (timer ? Promise.race([coming, timer.passed]) : coming);
      timer?.cancel();
      if (arrived && !arrived.done) {
        const notices = noticeFrames(batches);
        if (notices !== '') yield notices;
        batch.push(...arrived.value.filter((event) => isShown(modes, event)));
        coming = batches.next();
      }
      const isDue = !arrived || arrived.done || batch.some(({ type }) => isUrgent(type));
      if (isDue && batch.length > 0) {
        yield frame(batch.at(-1)!.sequence, 'batch', `[${batch.map(({ body }) => body).join(',')}]`);
        batch = [];
      }
      if (arrived?.done) return;
    }
  } finally {
    batches.close();
  }

  function timeout(ms: number): { passed: Promise<undefined>; cancel: () => void } {
    let cancel = (): void => {};
    const passed = new Promise<undefined>((resolve) => {
      cancel = clock.after(ms, () => resolve(undefined));
    });
    return { passed, cancel };
  }
}

/** The event that a person may be waiting for, besides the end of the run. */
const URGENT: EventType = 'node.suspended';

function isUrgent(type: string): boolean {
  return isTerminalEvent(type) || type === URGENT;
}

/** Snapshots that are sent at once. Each may be as long as the state of the run, and there is one for nearly every event. */
const SNAPSHOTS_CHARS = 65_536;

/** A snapshot after each event that `updates` would show; a reader that reconnects gets one first. */
async function* valueFrames(
  runtime: Runtime,
  row: RunRow,
  { after }: StreamRequest,
  batches: Batches,
): AsyncGenerator<string, undefined> {
  try {
    const held = await runtime.reader.load(row, Math.min(after, row.sequence));
    if (after >= 0 && !held.run.ended) yield snapshotFrame(held);
    const breaks = new Breaks(runtime.clock);
    for await (const batch of batches) {
      let frames = '';
      for (const event of batch) {
        applyStored(held.run, event);
        if (modeIncludes('values', event.type)) frames += snapshotFrame(held);
        await breaks.take();
        if (frames.length < SNAPSHOTS_CHARS) continue;
        yield frames;
        frames = '';
      }
      if (frames !== '') yield frames;
    }
  } finally {
    batches.close();
  }
}

function snapshotFrame({ run }: HeldRun): string {
  const snapshot = snapshotOf(run, sha256Hex);
  return frame(run.sequence, 'state.snapshot', JSON.stringify(withoutCredential(snapshot)));
}

/** Streams do not show the reference to a credential; reading the run does. */
function withoutCredential(snapshot: RunSnapshot): RunSnapshot {
  const { ai, ...rest } = (snapshot.configurable ?? {}) as Configurable;
  if (ai?.credentialRef === undefined) return snapshot;
  const { credentialRef: _, ...shown } = ai;
  return { ...snapshot, configurable: { ...rest, ai: shown } };
}
