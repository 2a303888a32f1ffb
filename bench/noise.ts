/**
 * Everything that one tenant can do to a host: `node noise.ts <url> <key> <kinds>`. It prints a line when all of it is
 * under way, and ends when its input does. `kinds` picks some of it, as in `runs,streams`; all of it by default.
 */
import { Agent, get } from 'node:http';
import { argv, stdin } from 'node:process';
import { fileURLToPath } from 'node:url';
import { WORKFLOWS } from './api.ts';
import { call } from './request.ts';

/** Runs that keep the scheduler busy, programs that never end, streams, and requests one after the other. */
const CHAINS = 40;
const PROGRAMS = 20;
const STREAMS = 200;
const SENDERS = 4;
const BODY_CHARACTERS = 900_000;
const CHAIN_NODES = 400;

if (argv[1] === fileURLToPath(import.meta.url))
  await makeNoise(argv[2]!, argv[3]!, argv[4] || 'runs,programs,streams,bodies,schemas');

async function makeNoise(url: string, key: string, kinds: string): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const has = (kind: string): boolean => kinds.split(',').includes(kind);
  let isOn = true;
  const again = async (act: (count: number) => Promise<unknown>): Promise<void> => {
    for (let count = 0; isOn; count++) await act(count).catch(() => {});
  };
  const start = (workflowId: string, inputs: object = {}) =>
    call(agent, url, key, 'POST', '/v1/runs', { workflowId, inputs });
  const huge = 'x'.repeat(BODY_CHARACTERS);
  if (has('programs')) await Promise.all(Array.from({ length: PROGRAMS }, () => start('noisy-program')));
  const runs = has('runs') ? Array.from({ length: CHAINS }, () => start('noisy-chain')) : [start('noisy-chain')];
  const { runId } = JSON.parse((await Promise.all(runs))[0]!.text) as { runId: string };
  const streams = Array.from({ length: has('streams') ? STREAMS : 0 }, () =>
    openStream(`${url}/v1/runs/${runId}/events`, key),
  );
  const senders = [
    ...Array.from({ length: has('runs') ? SENDERS : 0 }, () => again(() => start('noisy-chain'))),
    ...(has('bodies') ? [again(() => start('noisy-chain', { huge }))] : []),
    ...(has('schemas') ? [again((count) => call(agent, url, key, 'POST', WORKFLOWS, withSchema(count)))] : []),
  ];
  console.log('loud');
  for await (const _ of stdin);
  isOn = false;
  for (const stream of streams) stream.destroy();
  await Promise.all(senders);
  await cancelAll(agent, url, key);
  agent.destroy();
}

function openStream(url: string, key: string): ReturnType<typeof get> {
  const stream = get(url, { agent: false, headers: { authorization: `Bearer ${key}` } }, (response) => {
    response.on('error', () => {}).resume();
  });
  return stream.on('error', () => {});
}

async function cancelAll(agent: Agent, url: string, key: string): Promise<void> {
  for (;;) {
    const { text } = await call(agent, url, key, 'GET', '/v1/host/capstan/runs?status=running&limit=100');
    const { items } = JSON.parse(text) as { items: { runId: string }[] };
    if (items.length === 0) return;
    await Promise.all(items.map(({ runId }) => call(agent, url, key, 'POST', `/v1/runs/${runId}/cancel`, {})));
  }
}

/** What the runs of the noise are runs of. */
export function noisyDefinitions(): readonly object[] {
  return [chain(), program()];
}

function definition(id: string, nodes: readonly object[], edges: readonly object[] = []): object {
  return { id, name: id, version: '1', nodes, edges, triggers: [], variables: [], metadata: {}, settings: {} };
}

function node(id: string, typeId: string, config: object = {}): object {
  return { id, typeId, name: id, position: { x: 0, y: 0 }, config, inputs: {} };
}

/** A run that keeps the scheduler busy. */
function chain(): object {
  const ids = Array.from({ length: CHAIN_NODES }, (_, index) => `n${index}`);
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
