/** Many readers of one run: how soon they have an event, and what each of them costs. */
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { WorkflowDefinition } from '../src/protocol/running/workflows.ts';
import { api, chain, oneOf, register } from './api.ts';
import {
  type Cost,
  costOf,
  GROWTH_ARGUMENTS,
  type GrowthBench,
  type GrowthOptions,
  growthOf,
  inParallel,
  measureGrowth,
  onStore,
  partOf,
  withHost,
} from './growth.ts';
import { type BenchServer, KEY, REST_MS } from './servers.ts';
import { quantile } from './statistics.ts';

const SUBSCRIBERS = 1_000;
const EVENTS = 20;
/** Runs whose delays are measured: enough events that one in a hundred is several of them, not the slowest alone. */
const TIMED_RUNS = 15;
const PAUSE_MS = 200;
/** Milliseconds within which nearly all readers are to have an event. */
export const P99_MAX_MS = 50;
/** Memory that an idle stream may take. */
export const STREAM_MAX_KB = 20;
/** A key may have an eighth of this as streams, and all streams here belong to one key. */
const ENVIRONMENT = { CAPSTAN_INFLIGHT_CAP: '64000' };

/** A run that goes on when somebody answers, one gate after the other. */
const GATES: WorkflowDefinition = {
  ...chain(1),
  id: 'gates',
  nodes: Array.from({ length: EVENTS }, (_, index) => ({
    ...oneOf(`g${index}`, 'core.approvalGate'),
    config: { title: 'Go on?', actions: ['accept'] },
  })),
  edges: [],
};

/** What readers of one run see of the host. */
export interface Streams {
  readonly subscribers: number;
  /** Resident memory for each idle stream. */
  readonly kbEach: number;
  /** From the time that an event has, shortly before its commit, to a reader who has it. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Measures streams: their growth, their delays and their memory. */
export async function benchSubscribers(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({ args: [...args], options: GROWTH_ARGUMENTS });
  await onStore(values, async (options) => {
    await measureGrowth(subscribers, options);
    await measureStreams(options);
  });
}

/** Readers of one run, from the opening of their streams until the run has ended: few of them, and many. */
export const subscribers: GrowthBench = {
  name: 'subscribers',
  about: `subscribers of a run with ${EVENTS} approvals: cost of each, from its request to the end of the run`,
  measure: (options) =>
    withHost(
      options,
      async (host) => {
        await register(host, [GATES]);
        const sizes = [partOf(options, SUBSCRIBERS / 10), partOf(options, SUBSCRIBERS)] as const;
        const cost = (readers: number): Promise<Cost> => {
          const times = Math.round(sizes[1] / readers);
          return costOf(host, times * readers, () => inParallel(times, 1, () => followRun(host, readers)));
        };
        return [await growthOf(options, { what: 'subscribers of a run', each: 'subscriber', sizes, cost })];
      },
      ENVIRONMENT,
    ),
};

/** Lets readers follow a run to its end. */
async function followRun(host: BenchServer, readers: number): Promise<void> {
  const { runId } = await api(host, 'POST', '/v1/runs', { workflowId: 'gates' });
  const streams = await subscribe(host, runId, readers);
  for (let gate = 0; gate < EVENTS; gate++) await approve(host, runId, gate);
  await Promise.all(streams.map(({ ended }) => ended));
}

/** Streams of a run that waits: their memory at rest, and their delay while somebody answers. */
export async function measureStreams(options: GrowthOptions): Promise<Streams> {
  const count = partOf(options, SUBSCRIBERS);
  console.log(`\n${count.toLocaleString('en')} subscribers of one run`);
  const delays = await withHost(options, (host) => delaysOf(host, count), ENVIRONMENT);
  const kbEach = await memoryOfStreams(options, count);
  console.log(`  ${kbEach.toFixed(1)} kB of memory for each idle stream (under ${STREAM_MAX_KB} wanted)`);
  return { subscribers: count, kbEach, ...delays };
}

async function delaysOf(host: BenchServer, count: number): Promise<Pick<Streams, 'p50Ms' | 'p99Ms'>> {
  await register(host, [GATES]);
  // The first streams make the host load and compile what streams need; they are not what a stream costs.
  await followRun(host, count);
  const delays = new Delays();
  for (let run = 0; run < TIMED_RUNS; run++) await timeRun(host, count, delays);
  const [p50Ms, p99Ms] = [quantile(delays.all, 0.5), quantile(delays.all, 0.99)];
  console.log(
    `  from the time of an event to the reader: p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms` +
      ` (under ${P99_MAX_MS} wanted; the readers share the machine)`,
  );
  return { p50Ms, p99Ms };
}

/** Notes how long readers wait for each of the events of a run. */
async function timeRun(host: BenchServer, count: number, delays: Delays): Promise<void> {
  const { runId } = await api(host, 'POST', '/v1/runs', { workflowId: 'gates' });
  const streams = await subscribe(host, runId, count, (reader, data) => delays.note(reader, data));
  // What has happened so far is long, and comes in pieces.
  await delays.settled();
  for (let gate = 0; gate < EVENTS; gate++) {
    delays.begin(count);
    await approve(host, runId, gate);
    await delays.complete();
    // What follows the answer is on its way too, and is not to count for the next one.
    await delays.settled();
  }
  for (const { close } of streams) close();
}

/**
 * Resident memory for each stream of a run that waits: what a host with four times as many has more. Both rest at the
 * same time.
 */
async function memoryOfStreams(options: GrowthOptions, count: number): Promise<number> {
  const [few, many] = await Promise.all(
    [count, 4 * count].map((streams) =>
      withHost(options, (host) => residentKb(host, streams, partOf(options, REST_MS)), ENVIRONMENT),
    ),
  );
  return (many! - few!) / (3 * count);
}

/** The memory of a host with so many streams, after a while in which nothing happens. */
async function residentKb(host: BenchServer, count: number, restMs: number): Promise<number> {
  await register(host, [GATES]);
  const { runId } = await api(host, 'POST', '/v1/runs', { workflowId: 'gates' });
  const streams = await subscribe(host, runId, count);
  await pause(restMs);
  const kb = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${host.pid}/status`, 'utf8'))?.[1]);
  for (const { close } of streams) close();
  return kb;
}

function approve(host: BenchServer, runId: string, gate: number): Promise<unknown> {
  return api(host, 'POST', `/v1/runs/${runId}/interrupts/g${gate}`, { resumeValue: { action: 'accept' } });
}

/** How long each reader waits for the first event after a request. */
class Delays {
  readonly all: number[] = [];
  #sent = { at: 0, date: 0 };
  #lastAt = 0;
  #waiting = new Set<number>();
  #arrivedAt: number[] = [];
  /** What the first reader got. */
  #first: Buffer | undefined;

  begin(readers: number): void {
    this.#sent = { at: performance.now(), date: Date.now() };
    this.#waiting = new Set(Array(readers).keys());
    this.#arrivedAt = [];
    this.#first = undefined;
  }

  note(reader: number, data: Buffer): void {
    this.#lastAt = performance.now();
    if (!this.#waiting.has(reader) || !hasEvent(data)) return;
    this.#waiting.delete(reader);
    this.#arrivedAt.push(performance.now());
    // The memory is used again for whatever comes next.
    this.#first ??= Buffer.from(data);
  }

  /** Settles when nobody has got anything for a while. */
  async settled(): Promise<void> {
    while (performance.now() - this.#lastAt < PAUSE_MS) await pause(PAUSE_MS / 4);
  }

  async complete(): Promise<void> {
    while (this.#waiting.size > 0) await pause(5);
    const [, timestamp = ''] = /"timestamp":"([^"]+)"/.exec(this.#first!.toString()) ?? [];
    const happenedAt = this.#sent.at + Date.parse(timestamp) - this.#sent.date;
    this.all.push(...this.#arrivedAt.map((at) => at - happenedAt));
  }
}

/** One reader of a run. */
interface Stream {
  readonly ended: Promise<void>;
  close(): void;
}

/** Opens streams, and waits until each has said what there is so far. */
function subscribe(
  host: BenchServer,
  runId: string,
  count: number,
  onData: (reader: number, data: Buffer) => void = () => {},
): Promise<Stream[]> {
  return Promise.all(
    Array.from({ length: count }, (_, reader) => openStream(host, runId, (data) => onData(reader, data))),
  );
}

/** What a reader has just received. One for all of them: memory of their own would be collected in the middle of an event. */
const RECEIVED = Buffer.alloc(64 * 1_024);

/** A bare socket: a client that parses what it gets would cost the shared machine more than the host does. */
function openStream({ url }: BenchServer, runId: string, onData: (data: Buffer) => void): Promise<Stream> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const receive = (length: number): true => {
      const data = RECEIVED.subarray(0, length);
      onData(data);
      if (socket.bytesRead === length) rejectRefused(data, reject);
      // The first thing that a stream says has no event; what has happened so far follows.
      if (hasEvent(data)) resolve({ ended, close: () => socket.destroy() });
      return true;
    };
    const socket = connect({ host: hostname, port: Number(port), onread: { buffer: RECEIVED, callback: receive } });
    const ended = new Promise<void>((end) => socket.on('close', () => end()));
    socket.on('error', reject);
    socket.write(
      `GET /v1/runs/${runId}/events HTTP/1.1\r\nhost: bench\r\nconnection: close\r\nauthorization: Bearer ${KEY}\r\n\r\n`,
    );
  });
}

function rejectRefused(answer: Buffer, reject: (error: Error) => void): void {
  const [line = ''] = answer.toString('latin1').split('\r\n');
  if (!line.includes(' 200 ')) reject(new Error(`a stream was refused: ${line}`));
}

function hasEvent(data: Buffer): boolean {
  return data.includes('\nevent: ');
}
