import { expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { edge, fixed, node, register, variable, workflow } from '../support/definitions.ts';
import { expectEnvelope } from '../support/envelope.ts';
import { setGoal } from '../support/goals.ts';
import { fill, type Operation, operationsOf } from '../support/operations.ts';
import { type Shape, sampleOf } from '../support/samples.ts';
import { isOnAllStores, onEachStore } from '../support/stores.ts';

/**
 * Goal: no name that objects inherit and no text that a store cannot keep makes the host fail. Method: every operation
 * of the served document, the test seams among them, gets them wherever it takes a name or a text. Some requests are
 * fine otherwise, so that what is in them gets as far as it can.
 */

const INHERITED = ['__proto__', 'constructor'] as const;
const UNSTORABLE = ['a\u0000b', 'a\udc00'] as const;
/** Headers that the host reads, besides the credential and the idempotency key. */
const HEADERS = ['last-event-id', 'accept', 'if-match', 'if-none-match', 'traceparent', 'x-dedup'];
/** Takes something away, so that nothing would be left for the operations after it. */
const TAKES_AWAY = /\/force-expire\//;
/** Stands where the hostile text is put in. */
const PLACE = '\uffff';

type Ids = Record<string, string>;

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body?: string | undefined;
  readonly headers?: Record<string, string>;
}

/**
 * The body with the hostile text instead of one of its texts, or as a key of one of its objects. It is put in as text,
 * because an object would not take all of these names for its own.
 */
function withHostile(body: unknown, hostile: string): string[] {
  return [...marked(body)].map((changed) =>
    JSON.stringify(changed).replaceAll(`"${PLACE}"`, () => JSON.stringify(hostile)),
  );
}

function* marked(value: unknown): Generator<unknown> {
  if (typeof value === 'string') yield PLACE;
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) for (const changed of marked(item)) yield value.with(index, changed);
  } else if (typeof value === 'object' && value !== null) {
    yield { ...value, [PLACE]: 1 };
    for (const [name, member] of Object.entries(value)) {
      for (const changed of marked(member)) yield { ...value, [name]: changed };
    }
  }
}

const text = { type: 'string' };

/** A definition that has most of what definitions can have. */
const richWorkflow = (id: string) =>
  workflow(
    [
      node('a', 'core.flow.if', {
        config: { predicate: { path: 'x', op: 'eq', value: 'y' } },
        inputs: { value: fixed({ p: 'v' }) },
      }),
      node('b', 'core.openwop.data.string-format', {
        inputs: { template: fixed('{{ x }}'), context: variable('v', true) },
        notes: 'text',
      }),
    ],
    [edge('a', 'b', { label: 'then', condition: { type: 'equals', left: 'branch', right: 'then' } })],
    {
      id,
      description: 'text',
      variables: [{ name: 'v', type: 'string', defaultValue: 'x', description: 'text' }],
      channels: { c: { reducer: 'append', schema: text, default: [] } },
      configurableSchema: { type: 'object', properties: { p: text } },
      metadata: { tags: ['t'], customProperties: { p: 'x' } },
    },
  );

/** Requests that are fine as they are, and can be sent often. */
function fineRequests({
  workflowId = '',
  waiting,
  goalId,
}: Ids): (readonly [method: string, path: string, body: object])[] {
  const starter = { workflowId, inputs: { p: 'x' } };
  const predicate = { observe: { runs: {} }, when: 'observed.count > 100', everySec: 3_600 };
  const criteria = [{ key: 'k', expression: 'true' }];
  return [
    ['PUT', `/v1/host/capstan/workflows/${workflowId}`, richWorkflow(workflowId)],
    ['POST', '/v1/runs', { ...starter, tags: ['t'], metadata: { p: 'x' }, configurable: { model: 'm', p: 'x' } }],
    ['POST', `/v1/runs/${waiting}:fork`, { fromSeq: 0, mode: 'branch', runOptionsOverlay: { inputs: { p: 'x' } } }],
    ['POST', `/v1/runs/${waiting}/annotations`, { signal: { kind: 'label', label: 'x' }, note: 'text' }],
    ['POST', '/v1/host/capstan/schedules', { ...starter, cron: '0 9 * * *', timezone: 'UTC' }],
    ['POST', '/v1/host/capstan/heartbeats', { ...starter, intervalSec: 3_600, observe: { runs: { tag: 't' } } }],
    ['POST', '/v1/host/capstan/commitments', { ...starter, memoryRef: 'm', intention: 'text', predicate }],
    ['POST', '/v1/host/capstan/verifiers', { kind: 'criteria', criteria }],
    ['PATCH', `/v1/goals/${goalId}`, { objective: 'text' }],
    ['PUT', `/v1/host/capstan/goals/${goalId}/plan`, { ...starter, criteria }],
    ['POST', '/v1/host/capstan/keys', { name: 'ann', role: 'viewer' }],
    ['POST', '/v1/host/sample/heartbeat/tick', { heartbeatId: 'h', observedState: { p: 'x' } }],
    ['POST', '/v1/host/sample/memory/consolidate', { memoryRef: 'm', includeSecretCanary: true }],
    ['POST', '/v1/host/sample/commitment/fire', { memoryRef: 'm', condition: 'predicate' }],
    ['POST', '/v1/host/sample/test/mock-ai/program', { nodeId: 'n', program: [{ content: 'x', stopReason: 'end' }] }],
    [
      'POST',
      '/v1/host/sample/test/surface',
      { tenantId: 't', surface: 'kv', op: 'set', args: { key: 'k', value: 'v' } },
    ],
  ];
}

onEachStore('hostile names and texts', (host, kind) => {
  const owner = (): Api => host().as('owner');
  // What is wrong with these names is wrong before a store is asked, and it is PostgreSQL that cannot keep these texts.
  const inherited = kind === 'sqlite' || isOnAllStores ? INHERITED : [];
  const unstorable = kind === 'postgres' || isOnAllStores ? UNSTORABLE : [];
  const hostileHere = [...inherited, ...unstorable];

  async function expectNoFailure({ method, path, body, headers = {} }: Sent): Promise<Answer> {
    const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
    const answer = await owner().request(method, path, body, { ...type, ...headers });
    const told = `${method} ${path} ${JSON.stringify(headers)} ${body}: ${answer.status} ${answer.text}`;
    // Not a failure: what the protocol has for a family that a host does not serve.
    const isUnserved = answer.status === 501 && answer.body?.error === 'capability_not_provided';
    if (!isUnserved) expect(answer.status, told).toBeLessThan(500);
    if (answer.status >= 400 && answer.body?.jsonrpc === undefined) expectEnvelope(answer);
    return answer;
  }

  /** Sends what `make` makes of every operation, and gives how many requests that were. */
  async function overAll(make: (operation: Operation, ids: Ids) => readonly Sent[]): Promise<number> {
    const ids = await things();
    const sent = (await operationsOf(host().anonymous)).flatMap((operation) => make(operation, idsFor(operation, ids)));
    for (const each of sent) await expectNoFailure(each);
    return sent.length;
  }

  /** Things that operations can find. */
  async function things(): Promise<Ids> {
    const gated = await register(owner(), workflow([node('gate', 'core.approvalGate')]));
    const workflowId = await register(owner(), workflow([node('a')]));
    const ended = await owner().run(workflowId);
    await owner().ended(ended);
    const waiting = await owner().run(gated);
    await owner().until(waiting, ({ status }) => status === 'waiting-approval');
    const { id: goalId } = await setGoal(owner());
    return { workflowId, nodeId: 'gate', goalId, ended, waiting };
  }

  /** What only reads gets a run that has ended, so that its streams end too. */
  function idsFor({ method, path }: Operation, { ended = '', waiting = '', ...ids }: Ids): Ids {
    if (method === 'DELETE' || TAKES_AWAY.test(path)) return {};
    return { ...ids, runId: method === 'GET' ? ended : waiting };
  }

  async function schemas(): Promise<(ref: string) => Shape> {
    const { body } = await host().anonymous.get('/v1/openapi.json');
    return (ref) =>
      ref
        .split('/')
        .slice(1)
        .reduce((part, name) => part[name], body);
  }

  const bodySchema = ({ raw }: Operation): Shape | undefined => raw.requestBody?.content['application/json']?.schema;
  const emptyBody = ({ hasBody }: Operation): string | undefined => (hasBody ? '{}' : undefined);
  const queriesOf = ({ raw }: Operation): string[] =>
    (raw.parameters ?? [])
      .filter((parameter: { in: string }) => parameter.in === 'query')
      .map(({ name }: { name: string }) => name);

  it.each(inherited)('never fail for %s as a query', async (name) => {
    const count = await overAll((operation, ids) =>
      [`${name}=1`, `${name}[x]=1`, ...queriesOf(operation).map((query) => `${query}=${name}`)].map((query) => ({
        method: operation.method,
        path: `${fill(operation.path, ids)}?${query}`,
        body: emptyBody(operation),
      })),
    );
    expect(count).toBeGreaterThan(200);
  });

  it.each(unstorable)('never fail for %j as the value of a query', async (hostile) => {
    const value = encodeURIComponent(hostile.toWellFormed());
    await overAll((operation, ids) =>
      queriesOf(operation).map((query) => ({
        method: operation.method,
        path: `${fill(operation.path, ids)}?${query}=${value}`,
        body: emptyBody(operation),
      })),
    );
  });

  it.each(hostileHere)('never fail for %j as a part of the path', async (hostile) => {
    const find = await schemas();
    await overAll((operation, ids) => {
      const schema = bodySchema(operation);
      const body = schema && JSON.stringify(sampleOf(schema, { find, named: ids }));
      return [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
        method: operation.method,
        path: fill(operation.path, { ...ids, [name!]: hostile.toWellFormed() }),
        body,
      }));
    });
  });

  it.each(inherited)('never fail for %s as a header', async (name) => {
    await overAll((operation, ids) =>
      // Apart from the others: a refused key would hide them.
      [['idempotency-key'], HEADERS].map((headers) => ({
        method: operation.method,
        path: fill(operation.path, ids),
        body: emptyBody(operation),
        headers: Object.fromEntries(headers.map((header) => [header, name])),
      })),
    );
  });

  it.each(hostileHere)('never fail for %j as a key or a value in the body', async (hostile) => {
    const find = await schemas();
    const count = await overAll((operation, ids) => {
      const schema = bodySchema(operation);
      if (!schema) return [];
      return withHostile(sampleOf(schema, { find, named: ids, isFull: true }), hostile).map((body) => ({
        method: operation.method,
        path: fill(operation.path, ids),
        body,
      }));
    });
    expect(count).toBeGreaterThan(400);
  });

  it.each(hostileHere)('never fail for %j in a request that is fine otherwise', async (hostile) => {
    for (const [method, path, body] of fineRequests(await things())) {
      const fine = await expectNoFailure({ method, path, body: JSON.stringify(body) });
      expect(fine.status, `${method} ${path}: ${fine.text}`).toBeLessThan(300);
      for (const changed of withHostile(body, hostile)) await expectNoFailure({ method, path, body: changed });
    }
  });
});
