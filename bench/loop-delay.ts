/**
 * The worst delay of the event loop that one caller can cause: every node type and every route is driven with the largest
 * inputs that the host accepts, and workflows that are made to hold it are registered and run, one at a time; the host's
 * own measure of its loop is read before and after.
 */
import { capabilities } from '../src/capabilities/index.ts';
import { readConfig } from '../src/config.ts';
import type { JsonObject } from '../src/protocol/format/json.ts';
import { isObject } from '../src/protocol/format/json.ts';
import { HOSTILE_DEFINITIONS } from './hostile-definitions.ts';
import { type BenchServer, KEY, startCapstan } from './servers.ts';

/** Just under the limit of a request body. */
const BODY_CHARACTERS = 1_000_000;
/** What is wanted of every operation, on a quiet machine. */
const DELAY_MAX_MS = 500;
/** Operations that are printed. */
const SHOWN = 15;
/** The monitor of the loop samples at this rate, so a quiet loop shows about as much. */
const RESOLUTION_MS = 10;

const repeat = <T>(characters: number, item: T): T[] =>
  Array.from({ length: Math.floor(BODY_CHARACTERS / characters) }, () => item);
const words = Array.from({ length: 60_000 }, (_, index) => `item ${(index * 7_919) % 60_000}`);
const members = Object.fromEntries(words.slice(0, 40_000).map((word) => [word, 0]));

/** Inputs that fill the body, each in another shape. A start node gets them on ports of these names. */
const INPUTS: readonly JsonObject[] = [
  { array: words, least: 1 },
  { array: repeat(3, []) },
  { items: words },
  { text: 'a,b\n'.repeat(BODY_CHARACTERS / 4 / 1.3) },
  { text: JSON.stringify(words).slice(0, 900_000) },
  { value: members },
  { value: 'x'.repeat(BODY_CHARACTERS), content: 'x' },
  { rows: repeat(8, { a: 1 }) },
  { base: members, override: { a: 1 } },
  { template: '{{a}}'.repeat(150_000), a: 'b' },
  { inputs: [words.slice(0, 30_000).map((id) => ({ id })), []] },
  { body: 'x'.repeat(BODY_CHARACTERS - 100) },
];

/** Configs of the node types that need one. */
const CONFIGS: Readonly<Record<string, JsonObject>> = {
  'core.setVariable': { name: 'v' },
  'core.getVariable': { name: 'array' },
  'core.channelWrite': { channelName: 'c', reducer: 'append' },
  'core.delay': { delayMs: 1 },
  'core.flow.wait': { mode: 'duration', seconds: 0.001 },
  'core.conditional': { predicate: { path: '', op: 'truthy' } },
  'core.flow.if': { predicate: { path: '', op: 'regex', value: '(a|b)*c' } },
  'core.flow.filter': { predicate: { path: '', op: 'contains', value: 'y' } },
  'core.parallel': { routes: [{ label: 'a' }] },
  'core.flow.router': { routes: [{ label: 'a' }] },
  'core.flow.switch': { cases: { a: 'a' }, default: 'b' },
  'core.flow.sort': { keys: [{ path: '', compare: 'natural' }] },
  'core.flow.limit': { count: 100_000 },
  'core.flow.merge': { mode: 'combine-by-key' },
  'core.flow.aggregate-numeric': { op: 'sum' },
  'core.openwop.data.array-filter': { path: '', equals: 'item 1' },
  'core.openwop.data.array-map': { template: '{{a}} and {{b}}' },
  'core.openwop.data.array-group-by': { keyPath: '', aggregations: [{ outputKey: 'o', op: 'array' }] },
  'core.openwop.data.json-stringify': { indent: 10 },
  'core.openwop.http.fetch': { url: 'https://192.0.2.1/', method: 'POST', timeoutMs: 100 },
  'vendor.capstan.data.map': { expression: 'item' },
  'vendor.capstan.data.filter': { expression: 'item != "x"' },
  'vendor.capstan.data.evaluate': { expression: 'inputs' },
  'vendor.capstan.code.javascript': { code: 'return inputs;' },
  'vendor.capstan.flow.for-each': { workflowId: 'conformance-noop' },
  'core.subWorkflow': { workflowId: 'conformance-noop', waitForCompletion: true },
  'vendor.capstan.memory.remember': { memoryRef: 'bench' },
  'vendor.capstan.memory.recall': { memoryRef: 'bench' },
  'vendor.capstan.memory.forget': { memoryRef: 'bench' },
};

interface Delay {
  readonly operation: string;
  readonly ms: number;
}

/** Prints the operations with the worst delays, and what could not be driven. */
export async function benchLoopDelay(): Promise<void> {
  console.log('\nthe worst delay of the event loop, with the largest inputs that are allowed');
  const capstan = await startCapstan();
  const undriven: string[] = [];
  try {
    const delays = [
      ...(await driveNodes(capstan, undriven)),
      ...(await driveRoutes(capstan)),
      ...(await driveDefinitions(capstan)),
    ];
    delays.sort((a, b) => b.ms - a.ms);
    for (const { operation, ms } of delays.slice(0, SHOWN))
      console.log(`  ${ms.toFixed(0).padStart(6)} ms  ${operation}`);
    const worst = delays[0]!.ms;
    console.log(`  worst of ${delays.length} operations ${worst.toFixed(0)} ms (at most ${DELAY_MAX_MS} wanted)`);
    if (undriven.length > 0) console.log(`  not driven, because their config needs more: ${undriven.join(', ')}`);
  } finally {
    await capstan.stop();
  }
}

async function driveNodes(server: BenchServer, undriven: string[]): Promise<Delay[]> {
  const config = readConfig({}, {});
  const types = capabilities.flatMap(({ nodes }) => nodes(config)).map(({ typeId }) => typeId);
  const delays: Delay[] = [];
  for (const typeId of types) {
    const id = `loop-${typeId.toLowerCase().replaceAll('.', '-')}`;
    const registered = await send(server, 'POST', '/v1/host/capstan/workflows', definitionOf(id, typeId));
    if (registered.status !== 201) {
      undriven.push(typeId);
      continue;
    }
    let worst = 0;
    for (const inputs of INPUTS) {
      worst = Math.max(worst, await delayDuring(server, () => runToEnd(server, id, inputs)));
    }
    delays.push({ operation: `node ${typeId}`, ms: worst });
  }
  return delays;
}

function definitionOf(id: string, typeId: string): object {
  const config = CONFIGS[typeId] ?? {};
  const node = { id: 'a', typeId, name: 'a', position: { x: 0, y: 0 }, config, inputs: {} };
  return {
    id,
    name: id,
    version: '1',
    nodes: [node],
    edges: [],
    triggers: [],
    variables: [],
    metadata: {},
    settings: {},
  };
}

/** Runs that wait for somebody are cancelled: their first step is what is measured. */
async function runToEnd(server: BenchServer, workflowId: string, inputs: JsonObject): Promise<void> {
  const started = await send(server, 'POST', '/v1/runs', { workflowId, inputs });
  const { runId } = JSON.parse(started.text) as { runId?: string };
  if (!runId) return;
  for (let polls = 0; polls < 3; polls++) {
    const { text } = await send(server, 'GET', `/v1/runs/${runId}/events/poll?timeout=1`);
    if ((JSON.parse(text) as { isComplete: boolean }).isComplete) return;
  }
  await send(server, 'POST', `/v1/runs/${runId}/cancel`, {});
}

/** Definitions that are made to hold the host: they are refused, or registered and run. */
async function driveDefinitions(server: BenchServer): Promise<Delay[]> {
  const delays: Delay[] = [];
  for (const [index, { name, parts, inputs }] of HOSTILE_DEFINITIONS.entries()) {
    const workflowId = `hostile-${index}`;
    const ms = await delayDuring(server, async () => {
      await send(server, 'POST', '/v1/host/capstan/workflows', { id: workflowId, version: '1', ...parts });
      await runToEnd(server, workflowId, inputs);
    });
    delays.push({ operation: `a workflow with ${name}`, ms });
  }
  return delays;
}

/** Every operation of the OpenAPI document, with bodies and a query as large as they may be. */
async function driveRoutes(server: BenchServer): Promise<Delay[]> {
  const { text } = await send(server, 'GET', '/v1/openapi.json');
  const { paths } = JSON.parse(text) as { paths: Record<string, Record<string, { requestBody?: JsonObject }>> };
  const delays: Delay[] = [];
  for (const [template, methods] of Object.entries(paths)) {
    for (const [method, { requestBody }] of Object.entries(methods)) {
      const path = `${template.replaceAll(/\{[^}]+\}/g, 'x'.repeat(64))}?q=${'x'.repeat(8_000)}`;
      const bodies = requestBody ? INPUTS.map((inputs) => bodyFor(requestBody, inputs)) : [undefined];
      let worst = 0;
      for (const body of bodies) {
        worst = Math.max(worst, await delayDuring(server, () => send(server, method.toUpperCase(), path, body)));
      }
      delays.push({ operation: `${method.toUpperCase()} ${template}`, ms: worst });
    }
  }
  return delays;
}

/** The members that a body must have, in their least form, and inputs wherever it takes more. */
function bodyFor(requestBody: JsonObject, inputs: JsonObject): JsonObject {
  const [content] = Object.values((requestBody.content ?? {}) as Record<string, { schema?: JsonObject }>);
  const { properties = {}, required = [] } = (content?.schema ?? {}) as {
    properties?: Record<string, JsonObject>;
    required?: string[];
  };
  const least = required.map((name) => [name, leastOf(properties[name])]);
  return { ...Object.fromEntries(least), inputs, ...inputs };
}

function leastOf(schema: unknown): unknown {
  if (!isObject(schema)) return 'x';
  if ('const' in schema) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if (schema.type === 'array') return words;
  if (schema.type === 'object') return {};
  return schema.type === 'integer' || schema.type === 'number' ? 1 : 'x';
}

/** The longest time that the loop did not turn while something was done. */
async function delayDuring(server: BenchServer, act: () => Promise<unknown>): Promise<number> {
  await loopDelayMs(server);
  await act();
  return loopDelayMs(server);
}

/** Reading the metrics starts the measurement anew. */
async function loopDelayMs({ url }: BenchServer): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const seconds = Number(/^capstan_nodejs_eventloop_lag_max_seconds ([\d.e-]+)/m.exec(text)?.[1] ?? 0);
  return Math.max(0, seconds * 1_000 - RESOLUTION_MS);
}

/** Sends a request. An event stream has no end, so it is left at once. */
async function send(server: BenchServer, method: string, path: string, body?: unknown) {
  const response = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${KEY}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
    redirect: 'manual',
    signal: AbortSignal.timeout(120_000),
  });
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
  if (isStream) await response.body?.cancel();
  return { status: response.status, text: isStream ? '{}' : await response.text() };
}
