import { apply } from '../../../engine/run/fold.ts';
import { snapshotOf } from '../../../engine/run/snapshot.ts';
import { admits, type EventType, isTerminalEvent, type StreamMode } from '../../../protocol/running/events.ts';
import type { Configurable, RunSnapshot } from '../../../protocol/running/runs.ts';
import { decodeEvent } from '../../../runtime/recording.ts';
import type { HeldRun } from '../../../runtime/run-row.ts';
import type { RunRow, StoredEvent } from '../../../store/log.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import { follow } from './follow.ts';

export interface StreamRequest {
  readonly modes: readonly StreamMode[];
  readonly after: number;
  /** Gather events for so long; 0 sends each at once. */
  readonly bufferMs: number;
  /** Show what is said about the run while it is being followed. */
  readonly notices: boolean;
}

/** A frame of server-sent events. */
function frame(id: number, event: string, data: string): string {
  return `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`;
}

/** The frames of a run in the modes asked for. */
export function streamFrames(
  host: Host,
  row: RunRow,
  request: StreamRequest,
  signal: AbortSignal,
): AsyncIterable<string> {
  const frames = logFrames(host, row, request, signal);
  const isShown = request.notices && request.modes.some((mode) => mode === 'updates' || mode === 'debug');
  return isShown ? withNotices(host, row, frames) : frames;
}

function logFrames(host: Host, row: RunRow, request: StreamRequest, signal: AbortSignal): AsyncGenerator<string> {
  if (request.modes.includes('values')) return valueFrames(host, row, request, signal);
  return request.bufferMs > 0 ? batchFrames(host, row, request, signal) : eventFrames(host, row, request, signal);
}

/** Notices that may wait for a slow reader; it finds the rest where they are kept. */
const NOTICES_MAX = 1_000;

/**
 * The frames, and between them what is said about the run meanwhile. A notice has no id, so a reader that comes back
 * still names its place in the log.
 */
async function* withNotices(
  { runtime: { hub } }: Host,
  { run_id }: RunRow,
  frames: AsyncGenerator<string>,
): AsyncGenerator<string> {
  const notices: string[] = [];
  let ring = (): void => {};
  const stopListening = hub.onNotice(run_id, ({ event, data }) => {
    if (notices.length < NOTICES_MAX) notices.push(`event: ${event}\ndata: ${data}\n\n`);
    ring();
  });
  try {
    for (let coming = frames.next(); ; ) {
      const rung = new Promise<undefined>((resolve) => {
        ring = () => resolve(undefined);
      });
      const arrived = notices.length > 0 ? undefined : await Promise.race([coming, rung]);
      if (arrived?.done) return;
      yield arrived ? arrived.value : notices.splice(0).join('');
      if (arrived) coming = frames.next();
    }
  } finally {
    stopListening();
  }
}

const isShown = (modes: readonly StreamMode[], { type }: StoredEvent): boolean =>
  modes.some((mode) => admits(mode, type));

async function* eventFrames(
  host: Host,
  row: RunRow,
  { modes, after }: StreamRequest,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const onlyMessages = modes.length === 1 && modes[0] === 'messages';
  for await (const batch of follow(host, row, { after, signal })) {
    const shown = batch.filter((event) => isShown(modes, event));
    if (shown.length === 0) continue;
    yield shown
      .map((event) => (onlyMessages ? messageFrame(event) : frame(event.sequence, event.type, event.body)))
      .join('');
  }
}

/** The chunk stands inside the event and beside its envelope: readers of either kind find it. */
function messageFrame({ sequence, body }: StoredEvent): string {
  const event = JSON.parse(body) as { payload: object };
  return frame(sequence, 'ai.message.chunk', JSON.stringify({ ...event.payload, ...event }));
}

/** Gathers events; what a person waits for is sent without waiting. */
async function* batchFrames(
  host: Host,
  row: RunRow,
  request: StreamRequest,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const { clock } = host.runtime;
  const batches = follow(host, row, { after: request.after, signal })[Symbol.asyncIterator]();
  let gathered: StoredEvent[] = [];
  let coming = batches.next();
  for (;;) {
    const timer = gathered.length > 0 ? timeout(request.bufferMs) : undefined;
    const arrived = await (timer ? Promise.race([coming, timer.passed]) : coming);
    timer?.cancel();
    if (arrived && !arrived.done) {
      gathered.push(...arrived.value.filter((event) => isShown(request.modes, event)));
      coming = batches.next();
    }
    const isDue = !arrived || arrived.done || gathered.some(({ type }) => isUrgent(type));
    if (isDue && gathered.length > 0) {
      yield frame(gathered.at(-1)!.sequence, 'batch', `[${gathered.map(({ body }) => body).join(',')}]`);
      gathered = [];
    }
    if (arrived?.done) return;
  }

  function timeout(ms: number): { passed: Promise<undefined>; cancel: () => void } {
    let cancel = (): void => {};
    const passed = new Promise<undefined>((resolve) => {
      cancel = clock.after(ms, () => resolve(undefined));
    });
    return { passed, cancel };
  }
}

/** What somebody may be waiting for, besides the end of the run. */
const URGENT: EventType = 'node.suspended';

function isUrgent(type: string): boolean {
  return isTerminalEvent(type) || type === URGENT;
}

/** A snapshot after each step that `updates` would show; a reader that comes back gets one first. */
async function* valueFrames(
  host: Host,
  row: RunRow,
  { after }: StreamRequest,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const held = await host.runtime.reader.fresh(row, Math.min(after, row.sequence));
  if (after >= 0 && !held.run.ended) yield snapshotFrame(held);
  for await (const batch of follow(host, row, { after: held.run.sequence, signal })) {
    const frames: string[] = [];
    for (const event of batch) {
      apply(held.run, decodeEvent(event));
      if (admits('values', event.type)) frames.push(snapshotFrame(held));
    }
    if (frames.length > 0) yield frames.join('');
  }
}

function snapshotFrame({ run }: HeldRun): string {
  const snapshot = snapshotOf(run, sha256Hex);
  return frame(run.sequence, 'state.snapshot', JSON.stringify(withoutCredential(snapshot)));
}

/** A reference to a credential is shown to whoever reads the run, and goes into no stream. */
function withoutCredential(snapshot: RunSnapshot): RunSnapshot {
  const { ai, ...rest } = (snapshot.configurable ?? {}) as Configurable;
  if (ai?.credentialRef === undefined) return snapshot;
  const { credentialRef: _, ...shown } = ai;
  return { ...snapshot, configurable: { ...rest, ai: shown } };
}
