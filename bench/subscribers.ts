/** Many readers of one run: how soon they have an event, and what each of them costs while nothing happens. */
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { api, chain, oneOf } from './api.ts';
import { type BenchServer, KEY, startCapstan } from './servers.ts';
import { quantile } from './statistics.ts';

const SUBSCRIBERS = 1_000;
const EVENTS = 20;
const SETTLE_MS = 3_000;
const PAUSE_MS = 200;
const P99_MAX_MS = 50;
const KB_MAX = 20;

/** Streams of a run that waits, while somebody writes annotations to it and at rest. */
export async function benchSubscribers(): Promise<void> {
  console.log(`\n${SUBSCRIBERS.toLocaleString('en')} subscribers of one run`);
  const capstan = await startCapstan({ CAPSTAN_INFLIGHT_CAP: '4000' });
  try {
    await api(capstan, 'POST', '/v1/host/capstan/workflows', {
      ...chain(1),
      id: 'gates',
      nodes: Array.from({ length: EVENTS }, (_, index) => ({
        ...oneOf(`g${index}`, 'core.approvalGate'),
        config: { title: 'Go on?', actions: ['accept'] },
      })),
      edges: [],
    });
    // The first streams make the host load and compile what streams need; they are not what a stream costs.
    const warm = await api(capstan, 'POST', '/v1/runs', { workflowId: 'gates' });
    const first = await subscribe(capstan, warm.runId, SUBSCRIBERS / 10, () => {});
    const before = await residentKb(capstan);
    const { runId } = await api(capstan, 'POST', '/v1/runs', { workflowId: 'gates' });
    const delays: number[] = [];
    let [sentAt, waiting] = [0, new Set<number>()];
    const streams = await subscribe(capstan, runId, SUBSCRIBERS, (reader) => {
      if (waiting.delete(reader)) delays.push(performance.now() - sentAt);
    });
    const perStream = ((await residentKb(capstan)) - before) / SUBSCRIBERS;
    console.log(`  ${perStream.toFixed(1)} kB of memory for each idle stream (under ${KB_MAX} wanted)`);
    for (let index = 0; index < EVENTS; index++) {
      [sentAt, waiting] = [performance.now(), new Set(streams.keys())];
      await api(capstan, 'POST', `/v1/runs/${runId}/interrupts/g${index}`, { resumeValue: { action: 'accept' } });
      while (waiting.size > 0) await pause(5);
      // What follows the answer is on its way too, and is not to count for the next one.
      await pause(PAUSE_MS);
    }
    console.log(
      `  from the request to the reader: p50 ${quantile(delays, 0.5).toFixed(1)} ms, p99 ${quantile(delays, 0.99).toFixed(1)} ms` +
        ` (under ${P99_MAX_MS} wanted; the readers share the machine)`,
    );
    for (const close of [...first, ...streams]) close();
  } finally {
    await capstan.stop();
  }
}

/** Opens streams, and waits until each has said what there is so far. Returns what closes them. */
async function subscribe({ url }: BenchServer, runId: string, count: number, onData: (reader: number) => void) {
  return Promise.all(
    Array.from(
      { length: count },
      (_, reader) =>
        new Promise<() => void>((resolve, reject) => {
          const headers = { authorization: `Bearer ${KEY}` };
          const asked = get(`${url}/v1/runs/${runId}/events`, { agent: false, headers }, (response) => {
            if (response.statusCode !== 200) reject(new Error(`a stream was refused with ${response.statusCode}`));
            response.on('error', () => {}).on('data', () => onData(reader));
            response.once('data', () => resolve(() => asked.destroy()));
          });
          asked.on('error', reject);
        }),
    ),
  );
}

async function residentKb({ pid }: BenchServer): Promise<number> {
  await pause(SETTLE_MS);
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
