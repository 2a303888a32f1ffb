import { Agent, get, request } from 'node:http';
import { type BenchServer, startCapstan } from './servers.ts';

const QUIET = 'bench-key-of-quiet';
const NOISY = 'bench-key-of-noisy';
const ROUNDS = 5;
/** No-op runs of the quiet tenant in each half of a round. */
const RUNS = 150;
/** What the noisy tenant has at work: runs that loop, programs that loop, streams, huge bodies, schemas. */
const LOOPS = 40;
const PROGRAMS = 20;
const STREAMS = 200;
const SENDERS = 4;
const BODY_CHARACTERS = 900_000;
const LOOP_NODES = 400;

/**
 * What another tenant's p99 of a no-op run is while one tenant does its worst, against its p99 alone, turn by turn on
 * one host: a busy machine slows both halves of a round.
 */
export async function benchNoisyNeighbour(): Promise<void> {
  console.log(`\na quiet tenant beside a noisy one, ${ROUNDS} rounds of ${RUNS} runs alone and ${RUNS} beside it`);
  const keys = [
    { key: QUIET, tenant: 'quiet', principal: 'quiet', role: 'owner' },
    { key: NOISY, tenant: 'noisy', principal: 'noisy', role: 'owner' },
  ];
  const capstan = await startCapstan({
    CAPSTAN_API_KEYS: JSON.stringify(keys),
    CAPSTAN_MAX_NODE_EXECUTIONS: '1000000',
  });
  const ratios: number[] = [];
  try {
    for (const definition of [chain(), program()]) await call(capstan, NOISY, 'POST', WORKFLOWS, definition);
    await latencies(capstan);
    for (let round = 1; round <= ROUNDS; round++) {
      const alone = await latencies(capstan);
      const noise = makeNoise(capstan);
      await noise.isLoud;
      const beside = await latencies(capstan);
      await noise.stop();
      ratios.push(beside.p99 / alone.p99);
      console.log(
        `  round ${round}: alone p50 ${alone.p50.toFixed(1)} ms, p99 ${alone.p99.toFixed(1)} ms   beside p50 ${beside.p50.toFixed(1)} ms, p99 ${beside.p99.toFixed(1)} ms   ratio ${ratios.at(-1)!.toFixed(2)}   (${noise.requests()} noisy requests)`,
      );
    }
  } finally {
    await capstan.stop();
  }
  const median = [...ratios].sort((a, b) => a - b)[Math.floor(ratios.length / 2)]!;
  console.log(`  median ratio of p99 ${median.toFixed(2)} (under 3 wanted)`);
}

const WORKFLOWS = '/v1/host/capstan/workflows';
const agent = new Agent({ keepAlive: true });

/** Milliseconds from POST to the end of the run, one run after the other. */
async function latencies(server: BenchServer): Promise<{ readonly p50: number; readonly p99: number }> {
  const all: number[] = [];
  for (let run = 0; run < RUNS; run++) {
    const before = performance.now();
    const { runId } = JSON.parse(
      (await call(server, QUIET, 'POST', '/v1/runs', { workflowId: 'conformance-noop' })).text,
    );
    for (let last = -1, isComplete = false; !isComplete; ) {
      const after = last < 0 ? '' : `?lastSequence=${last}`;
      const polled = JSON.parse((await call(server, QUIET, 'GET', `/v1/runs/${runId}/events/poll${after}`)).text);
      isComplete = polled.isComplete;
      last = polled.lastEventSeq;
    }
    all.push(performance.now() - before);
  }
  all.sort((a, b) => a - b);
  return { p50: all[Math.floor(all.length * 0.5)]!, p99: all[Math.floor(all.length * 0.99)]! };
}

interface Noise {
  /** Settles when everything is under way. */
  readonly isLoud: Promise<unknown>;
  requests(): number;
  stop(): Promise<void>;
}

/** Everything that one tenant can do, again and again until it is told to stop. */
function makeNoise(server: BenchServer): Noise {
  let isOn = true;
  let count = 0;
  const streams: ReturnType<typeof get>[] = [];
  const again = async (act: () => Promise<unknown>): Promise<void> => {
    while (isOn) {
      await act().catch(() => {});
      count++;
    }
  };
  const start = (workflowId: string) => call(server, NOISY, 'POST', '/v1/runs', { workflowId });
  const runs = [
    ...Array.from({ length: LOOPS }, () => start('noisy-chain')),
    ...Array.from({ length: PROGRAMS }, () => start('noisy-program')),
  ];
  const isLoud = Promise.all(runs).then(([first]) => {
    const { runId } = JSON.parse(first!.text) as { runId: string };
    for (let stream = 0; stream < STREAMS; stream++) streams.push(openStream(server, `/v1/runs/${runId}/events`));
  });
  const huge = 'x'.repeat(BODY_CHARACTERS);
  const senders = [
    ...Array.from({ length: SENDERS }, () => again(() => start('noisy-chain'))),
    again(() => call(server, NOISY, 'POST', '/v1/runs', { workflowId: 'noisy-chain', inputs: { huge } })),
    again(() => call(server, NOISY, 'POST', WORKFLOWS, withSchema(count))),
  ];
  return {
    isLoud,
    requests: () => count,
    stop: async () => {
      isOn = false;
      for (const stream of streams) stream.destroy();
      await Promise.all(senders);
      await cancelAll(server);
    },
  };
}

function openStream({ url }: BenchServer, path: string): ReturnType<typeof get> {
  const stream = get(url + path, { agent: false, headers: { authorization: `Bearer ${NOISY}` } }, (response) => {
    response.on('error', () => {}).resume();
  });
  return stream.on('error', () => {});
}

async function cancelAll(server: BenchServer): Promise<void> {
  for (;;) {
    const { text } = await call(server, NOISY, 'GET', '/v1/host/capstan/runs?status=running&limit=100');
    const { items } = JSON.parse(text) as { items: { runId: string }[] };
    if (items.length === 0) return;
    await Promise.all(items.map(({ runId }) => call(server, NOISY, 'POST', `/v1/runs/${runId}/cancel`, {})));
  }
}

function definition(id: string, nodes: readonly object[], edges: readonly object[] = []): object {
  return { id, name: id, version: '1', nodes, edges, triggers: [], variables: [], metadata: {}, settings: {} };
}

function node(id: string, typeId: string, config: object = {}): object {
  return { id, typeId, name: id, position: { x: 0, y: 0 }, config, inputs: {} };
}

/** A run that keeps the scheduler busy. */
function chain(): object {
  const ids = Array.from({ length: LOOP_NODES }, (_, index) => `n${index}`);
  const edges = ids.slice(1).map((id, index) => ({ id: `e${index}`, sourceNodeId: ids[index]!, targetNodeId: id }));
  return definition(
    'noisy-chain',
    ids.map((id) => node(id, 'core.noop')),
    edges,
  );
}

/** A program that never ends. */
function program(): object {
  return definition('noisy-program', [
    node('p', 'vendor.capstan.code.javascript', { code: 'for (;;);', timeoutMs: 30_000 }),
  ]);
}

/** A definition with a schema that nobody has compiled yet. */
function withSchema(count: number): object {
  const properties = Object.fromEntries(
    Array.from({ length: 200 }, (_, index) => [`p${index}`, { type: 'string', minLength: (count % 50) + 1 }]),
  );
  const config = { questions: [{ id: 'q', question: '?', schema: { type: 'object', properties } }] };
  return definition(`noisy-schema-${count % 50}`, [node('ask', 'core.clarificationGate', config)]);
}

function call(
  { url }: BenchServer,
  key: string,
  method: string,
  path: string,
  body?: object,
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}`, ...(body ? { 'content-type': 'application/json' } : {}) };
    const sent = request(url + path, { method, agent, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode!, text }));
    });
    sent.on('error', reject).end(body && JSON.stringify(body));
  });
}
