/** A load on one server, from a process of its own: `node load.ts '<Load as JSON>'`. */
import { execFile } from 'node:child_process';
import { Agent } from 'node:http';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { call } from './request.ts';
import { quantile } from './statistics.ts';

/**
 * How a run is asked for. `accepted`: POST alone, and at last everything has to have ended; `ended`: POST, then a long
 * poll until the run has ended; `call`: one request to a host, which answers with the result of the run; `called`: the
 * same to a program that does nothing else.
 */
export type Way = 'accepted' | 'ended' | 'call' | 'called';

/** What is asked of a server. The load ends after so many runs or so many seconds, whichever is named. */
export interface Load {
  readonly url: string;
  readonly key: string;
  readonly way: Way;
  readonly concurrency: number;
  readonly runs?: number;
  readonly seconds?: number;
  readonly workflowId?: string;
}

/** What a server did with it. */
export interface Loaded {
  readonly runs: number;
  readonly runsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const SELF = fileURLToPath(import.meta.url);

/** Puts a load on a server, and says what came of it. */
export async function load(asked: Load): Promise<Loaded> {
  const { stdout } = await promisify(execFile)(process.execPath, [SELF, JSON.stringify(asked)]);
  return JSON.parse(stdout) as Loaded;
}

async function main(asked: Load): Promise<void> {
  const { concurrency, way, runs = Number.POSITIVE_INFINITY, seconds = Number.POSITIVE_INFINITY } = asked;
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency });
  const ask: Ask = (method, path, body) => call(agent, asked.url, asked.key, method, path, body);
  const latencies: number[] = [];
  const started = performance.now();
  const one = WAYS[way];
  let begun = 0;
  const line = async (): Promise<void> => {
    while (begun++ < runs && performance.now() - started < seconds * 1_000) {
      const before = performance.now();
      await one(ask, asked.workflowId ?? 'conformance-noop');
      latencies.push(performance.now() - before);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, line));
  if (way === 'accepted') await allEnded(ask);
  const elapsed = (performance.now() - started) / 1_000;
  const loaded: Loaded = {
    runs: latencies.length,
    runsPerSecond: latencies.length / elapsed,
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
  };
  console.log(JSON.stringify(loaded));
  agent.destroy();
}

type Ask = (method: string, path: string, body?: object) => ReturnType<typeof call>;

const WAYS: Record<Way, (ask: Ask, workflowId: string) => Promise<unknown>> = {
  accepted: begin,
  ended: async (ask, workflowId) => {
    const runId = await begin(ask, workflowId);
    for (let last = -1, isComplete = false; !isComplete; ) {
      const after = last < 0 ? '' : `?lastSequence=${last}`;
      const { status, text } = await ask('GET', `/v1/runs/${runId}/events/poll${after}`);
      if (status !== 200) throw new Error(`a poll was refused with ${status}: ${text}`);
      const polled = JSON.parse(text) as { isComplete: boolean; lastEventSeq: number; runStatus: string };
      ({ isComplete, lastEventSeq: last } = polled);
      if (isComplete && polled.runStatus !== 'completed') throw new Error(`a run ended as ${polled.runStatus}`);
    }
  },
  call: async (ask, workflowId) => {
    const { status, text } = await ask('POST', '/v1/host/capstan/calls', { workflowId });
    if (status !== 200) throw new Error(`a call was refused with ${status}: ${text}`);
    const { status: runStatus } = JSON.parse(text) as { status: string };
    if (runStatus !== 'completed') throw new Error(`a run ended as ${runStatus}`);
  },
  called: async (ask) => {
    const { status, text } = await ask('POST', '', {});
    if (status !== 200) throw new Error(`a call was refused with ${status}: ${text}`);
  },
};

async function begin(ask: Ask, workflowId: string): Promise<string> {
  const { status, text } = await ask('POST', '/v1/runs', { workflowId });
  if (status !== 201) throw new Error(`a run was refused with ${status}: ${text}`);
  return (JSON.parse(text) as { runId: string }).runId;
}

/** A run counts when it has ended, not when it was accepted. */
async function allEnded(ask: Ask): Promise<void> {
  for (;;) {
    const { text } = await ask('GET', '/v1/host/capstan/runs?status=running&limit=1');
    if ((JSON.parse(text) as { items: unknown[] }).items.length === 0) return;
  }
}

if (process.argv[1] === SELF) await main(JSON.parse(process.argv[2]!) as Load);
