/** A load on one server, from a process of its own: `node load.ts <url> <key> <runs> <concurrency> <workflowId>`. */
import { Agent, request } from 'node:http';

const [url = '', key = '', runs = '1000', concurrency = '32', workflowId = 'conformance-noop'] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: Number(concurrency) });
const latencies: number[] = [];
let left = Number(runs);

const started = performance.now();
await Promise.all(Array.from({ length: Number(concurrency) }, startRuns));
await allEnded();
const seconds = (performance.now() - started) / 1_000;
latencies.sort((a, b) => a - b);
const quantile = (part: number): number =>
  latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * part))]!;
console.log(JSON.stringify({ runsPerSecond: Number(runs) / seconds, p50Ms: quantile(0.5), p99Ms: quantile(0.99) }));
agent.destroy();

async function startRuns(): Promise<void> {
  while (left-- > 0) {
    const before = performance.now();
    const { status } = await call('POST', '/v1/runs', JSON.stringify({ workflowId }));
    if (status !== 201) throw new Error(`a run was refused with ${status}`);
    latencies.push(performance.now() - before);
  }
}

/** A run counts when it has ended, not when it was accepted. */
async function allEnded(): Promise<void> {
  for (;;) {
    const { body } = await call('GET', '/v1/host/capstan/runs?status=running&limit=1');
    if ((JSON.parse(body) as { items: unknown[] }).items.length === 0) return;
  }
}

function call(method: string, path: string, body?: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}`, ...(body ? { 'content-type': 'application/json' } : {}) };
    const sent = request(url + path, { method, agent, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode!, body: text }));
    });
    sent.on('error', reject).end(body);
  });
}
