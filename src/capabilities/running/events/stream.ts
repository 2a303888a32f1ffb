import { snapshotOf } from '../../../engine/run/snapshot.ts';
import { type EventType, isTerminalEvent } from '../../../protocol/running/events.ts';
import type { Configurable, RunSnapshot } from '../../../protocol/running/runs.ts';
import { modeIncludes, type StreamMode } from '../../../protocol/running/stream-modes.ts';
import { applyStored } from '../../../runtime/recording.ts';
import type { HeldRun } from '../../../runtime/run-row.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { RunRow, StoredEvent } from '../../../store/log.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { endLater } from '../../../system/end-later.ts';
import { follow } from './follow.ts';

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
  const frames = logFrames(runtime, row, request, signal);
  const isShown = request.notices && request.modes.some((mode) => mode === 'updates' || mode === 'debug');
  return isShown ? withNotices(runtime, row, frames) : frames;
}

function logFrames(runtime: Runtime, row: RunRow, request: StreamRequest, signal: AbortSignal): Frames {
  if (request.modes.includes('values')) return valueFrames(runtime, row, request, signal);
  return request.bufferMs > 0 ? batchFrames(runtime, row, request, signal) : eventFrames(runtime, row, request, signal);
}

/** Notices that may wait for a slow reader. Further ones are dropped from the stream; they can still be listed. */
const NOTICES_MAX = 1_000;

/**
 * The frames with notices between them. A notice has no id, so `Last-Event-ID` stays a position in the log. It is no
 * generator, and neither are the frames of events: a generator keeps what it gave last for as long as it waits.
 */
function withNotices({ hub }: Runtime, { run_id }: RunRow, frames: Frames): Frames {
  const notices: string[] = [];
  let coming: Promise<IteratorResult<string>> | undefined;
  let wake = (): void => {};
  const stopListening = hub.onNotice(run_id, ({ event, data }) => {
    if (notices.length < NOTICES_MAX) notices.push(`event: ${event}\ndata: ${data}\n\n`);
    wake();
  });
  const next = async (): Promise<IteratorResult<string>> => {
    coming ??= frames.next();
    const noticed = new Promise<undefined>((resolve) => {
      wake = () => resolve(undefined);
    });
    const arrived = notices.length > 0 ? undefined : await Promise.race([coming, noticed]);
    if (!arrived) return { done: false, value: notices.splice(0).join('') };
    coming = undefined;
    if (arrived.done) stopListening();
    return arrived;
  };
  return framesFrom(next, () => {
    stopListening();
    endLater(frames);
  });
}

/** Frames of a stream, one after the other. */
type Frames = AsyncIterableIterator<string>;

function framesFrom(next: () => Promise<IteratorResult<string>>, end: () => void): Frames {
  const frames: Frames = {
    next,
    return: async () => {
      end();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]: () => frames,
  };
  return frames;
}

const isShown = (modes: readonly StreamMode[], { type }: StoredEvent): boolean =>
  modes.some((mode) => modeIncludes(mode, type));

function eventFrames(runtime: Runtime, row: RunRow, { modes, after }: StreamRequest, signal: AbortSignal): Frames {
  const batches = follow(runtime, row, { after, signal });
  const next = async (): Promise<IteratorResult<string>> => {
    for (;;) {
      const { done, value: batch } = await batches.next();
      if (done) return { done, value: undefined };
      const text = framesOf(batch, modes);
      // The events are not kept beside their text while the caller reads it.
      batch.length = 0;
      if (text !== '') return { done: false, value: text };
    }
  };
  return framesFrom(next, () => endLater(batches));
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
  runtime: Runtime,
  row: RunRow,
  request: StreamRequest,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const { clock } = runtime;
  const batches = follow(runtime, row, { after: request.after, signal });
  let batch: StoredEvent[] = [];
  let coming = batches.next();
  try {
    for (;;) {
      const timer = batch.length > 0 ? timeout(request.bufferMs) : undefined;
      const arrived = await (timer ? Promise.race([coming, timer.passed]) : coming);
      timer?.cancel();
      if (arrived && !arrived.done) {
        batch.push(...arrived.value.filter((event) => isShown(request.modes, event)));
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
    endLater(batches);
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

/** A snapshot after each event that `updates` would show; a reader that reconnects gets one first. */
async function* valueFrames(
  runtime: Runtime,
  row: RunRow,
  { after }: StreamRequest,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const held = await runtime.reader.load(row, Math.min(after, row.sequence));
  if (after >= 0 && !held.run.ended) yield snapshotFrame(held);
  for await (const batch of follow(runtime, row, { after: held.run.sequence, signal })) {
    const frames: string[] = [];
    for (const event of batch) {
      applyStored(held.run, event);
      if (modeIncludes('values', event.type)) frames.push(snapshotFrame(held));
    }
    if (frames.length > 0) yield frames.join('');
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
