import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { WorkflowNode } from '../../src/protocol/running/workflows.ts';
import type { Answer, Api } from '../support/api.ts';
import { node, register, unique, workflow } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { resolve, waits } from '../support/interrupts.ts';
import { killableHosts } from '../support/killed.ts';
import { ModelServer } from '../support/model-server.ts';
import type { HostProcess } from '../support/process.ts';
import { loadSchemas } from '../support/schemas.ts';
import { storesFor } from '../support/stores.ts';

/**
 * Goal: what a model sends to the engine is lifted into the run, within the rules, and never twice.
 * Method: real hosts, and a server of models that says what the test lays out: one answer for each step.
 */

type Body = Answer['body'];

const SECRET = 'sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD';
const TICKET = 'vendor.acme.ticket.create';
const OTHER = 'vendor.acme.note.create';
const SCHEMA = {
  type: 'object',
  required: ['title'],
  properties: { title: { type: 'string' } },
  additionalProperties: false,
};
const KINDS = new Map([
  [TICKET, { version: 2, schema: SCHEMA }],
  [OTHER, { version: 1, schema: { type: 'object' } }],
]);
const QUESTIONS = [{ id: 'colour', question: 'Which colour?', schema: { enum: ['red', 'blue'] } }];
const WRITERS = ['core.ai.callPrompt', 'core.ai.chatCompletion', 'core.ai.structuredOutput', 'core.agents.run'];

const envelope = (type: string, payload: object, more: object = {}) => ({
  type,
  schemaVersion: 1,
  envelopeId: unique('env'),
  correlationId: unique('cor'),
  payload,
  meta: { source: 'ai-generation', ts: '2026-05-18T10:00:00Z' },
  ...more,
});
const clarification = (more: object = {}, questions: object[] = QUESTIONS) =>
  envelope('clarification.request', { questions }, more);
const types = (events: readonly Body[]): string[] => events.map(({ type }) => type);
const ofType = (events: readonly Body[], type: string): Body[] => events.filter((event) => event.type === type);

const providers = (server: ModelServer) => [
  {
    provider: 'acme',
    kind: 'openai-compatible' as const,
    baseUrl: server.url,
    models: ['talk'],
    prices: {},
    timeoutMs: 60_000,
  },
];

/** The model says these, one for each step: how many answers of its own it is shown says which is next. */
function says(server: ModelServer, ...steps: unknown[]): void {
  server.on('talk', ({ body }, speech) => {
    const step = body.messages.filter(({ role }: Body) => role === 'assistant').length;
    const content = steps[step] ?? steps.at(-1);
    speech.text(typeof content === 'string' ? content : JSON.stringify(content)).end();
  });
}

function asking(typeId = 'core.ai.chatCompletion', more: Partial<WorkflowNode> = {}): WorkflowNode {
  const shape = typeId === 'core.ai.structuredOutput' ? { outputSchema: SCHEMA } : {};
  return node('ask', typeId, { ...more, config: { provider: 'acme', model: 'talk', ...shape, ...more.config } });
}

describe.each(storesFor('the envelopes of a model'))('the envelopes of a model, on %s', (kind) => {
  let server: ModelServer;
  let host: TestHost;
  beforeAll(async () => {
    server = await ModelServer.open();
    host = await startTestHost(kind, inject('postgresUrl'), { models: providers(server), envelopeKinds: KINDS });
  });
  afterAll(async () => {
    await host?.stop();
    server.close();
  });

  const api = (): Api => host.as('reviewer');
  const start = async (asker: WorkflowNode): Promise<string> =>
    api().run(await register(api(), workflow([asker])), { inputs: { prompt: 'Paint it.', userPrompt: 'Paint it.' } });
  const finish = async (asker: WorkflowNode) => {
    const snapshot = await api().ended(await start(asker));
    return { snapshot, events: (await api().events(snapshot.runId)) as Body[] };
  };
  const asks = (): readonly Body[] => server.asked('talk');
  const messages = (index: number): Body[] => asks()[index]!.body.messages;

  describe.each(WRITERS)('a clarification from %s', (typeId) => {
    const final = typeId === 'core.ai.structuredOutput' ? { title: 'done' } : 'Painted red.';

    it('suspends the run, and its answer goes back to the model', async () => {
      const sent = clarification();
      says(server, sent, final);
      const runId = await start(asking(typeId));
      const waiting = await waits(api(), runId);
      expect(waiting).toMatchObject({ status: 'waiting-input', currentNodeId: 'ask' });
      const asked: Body[] = await api().events(runId);
      for (const type of ['interrupt.requested', 'clarification.requested']) {
        expect(ofType(asked, type)).toMatchObject([{ nodeId: 'ask', causationId: sent.correlationId }]);
      }
      const [{ payload }] = ofType(asked, 'interrupt.requested') as [Body];
      expect(payload).toMatchObject({ kind: 'clarification', data: { questions: QUESTIONS } });

      const wrong = await resolve(api(), runId, 'ask', { answers: { colour: 'green' } });
      expect(wrong.status).toBe(400);
      expect((await resolve(api(), runId, 'ask', { answers: { colour: 'red' } })).status).toBe(200);
      const ended = await api().ended(runId);
      expect(ended.status, JSON.stringify(ended.error)).toBe('completed');
      expect(asks()).toHaveLength(2);
      expect(messages(1).at(-2)).toMatchObject({ role: 'assistant', content: JSON.stringify(sent) });
      expect(messages(1).at(-1).content).toContain('{"colour":"red"}');
      expect(JSON.stringify(ended.nodeStates.ask.outputs)).toContain(typeof final === 'string' ? final : final.title);
      const events: Body[] = await api().events(runId);
      expect(ofType(events, 'interrupt.requested')).toHaveLength(1);
      expect(ofType(events, 'provider.usage')).toHaveLength(2);
      expect(ofType(events, 'output.chunk').filter(({ payload: { isLast } }) => isLast)).toHaveLength(2);
    });
  });

  it('may ask as often as is advertised, and no more', async () => {
    const { limits } = (await api().get('/.well-known/openwop')).body;
    const rounds = limits.clarificationRounds;
    const sent = Array.from({ length: rounds + 1 }, () => clarification());
    says(server, ...sent);
    const runId = await start(asking());
    for (let round = 0; round < rounds; round++) {
      await api().until(runId, ({ status }) => status === 'waiting-input');
      expect((await resolve(api(), runId, 'ask', { answers: { colour: 'blue' } })).status).toBe(200);
    }
    const ended = await api().ended(runId);
    expect(ended.error).toMatchObject({ code: 'cap_breached' });
    expect(ended.error.message).toMatch(new RegExp(`clarificationRounds is ${rounds}\\b`));
    const events: Body[] = await api().events(runId);
    expect(ofType(events, 'interrupt.requested')).toHaveLength(rounds);
    expect(ofType(events, 'cap.breached')).toMatchObject([
      {
        causationId: sent.at(-1)!.correlationId,
        payload: { kind: 'clarification', limit: rounds, observed: rounds + 1, nodeId: 'ask' },
      },
    ]);
    expect(types(events).indexOf('cap.breached')).toBeLessThan(types(events).indexOf('node.failed'));
    expect(loadSchemas().event(ofType(events, 'cap.breached')[0])).toEqual([]);
  });

  it('may ask for schemas, which it is told out of band', async () => {
    const sent = envelope('schema.request', { envelopeType: TICKET, reason: 'I am not sure.' });
    const read = envelope('schema.response', { envelopeType: TICKET, ack: true });
    const done = envelope(TICKET, { title: 'A leak' }, { schemaVersion: 2 });
    says(server, sent, read, done);
    const { snapshot, events } = await finish(asking());
    expect(snapshot.status).toBe('completed');
    expect(messages(1)[0]).toMatchObject({ role: 'system' });
    expect(messages(1)[0].content).toContain(JSON.stringify(SCHEMA));
    const logged = ofType(events, 'log.appended');
    expect(logged.map(({ causationId, payload: { level } }) => [causationId, level])).toEqual([
      [sent.correlationId, 'debug'],
      [read.correlationId, 'debug'],
      [done.correlationId, 'debug'],
    ]);
    expect(snapshot.nodeStates.ask.outputs.envelope).toEqual({
      type: TICKET,
      envelopeId: done.envelopeId,
      correlationId: done.correlationId,
      payload: { title: 'A leak' },
    });
  });

  it('may not ask for schemas for ever, nor send envelopes for ever', async () => {
    const { limits } = (await api().get('/.well-known/openwop')).body;
    says(server, ...Array.from('abcd', () => envelope('schema.request', { envelopeType: 'error' })));
    const schemas = await finish(asking());
    expect(schemas.snapshot.error.code).toBe('cap_breached');
    expect(ofType(schemas.events, 'cap.breached')).toMatchObject([
      { payload: { kind: 'schema', limit: limits.schemaRounds, observed: limits.schemaRounds + 1 } },
    ]);
    const many = Array.from({ length: limits.envelopesPerTurn + 1 }, () =>
      envelope('schema.response', { envelopeType: 'error', ack: true }),
    );
    says(server, many);
    const flood = await finish(asking());
    expect(flood.snapshot.error.code).toBe('cap_breached');
    expect(ofType(flood.events, 'cap.breached')).toMatchObject([
      { payload: { kind: 'envelopes', limit: limits.envelopesPerTurn, observed: limits.envelopesPerTurn + 1 } },
    ]);
    says(server, ...many);
    expect((await finish(asking())).snapshot.error.code).toBe('cap_breached');
  });

  it.each(WRITERS)('may report an error, which is no failure of %s', async (typeId) => {
    const sent = envelope('error', { code: 'ambiguous_intent', message: 'Paint what?', details: { a: 1 } });
    says(server, sent);
    const { snapshot, events } = await finish(asking(typeId));
    expect(snapshot.status).toBe('completed');
    expect(snapshot.nodeStates.ask.outputs.envelope).toMatchObject({
      type: 'error',
      payload: { code: 'ambiguous_intent', message: 'Paint what?' },
    });
    expect(types(events)).not.toContain('node.failed');
    expect(ofType(events, 'log.appended')).toMatchObject([
      {
        causationId: sent.correlationId,
        payload: { level: 'error', message: 'Paint what?', fields: { code: 'ambiguous_intent', details: { a: 1 } } },
      },
    ]);
  });

  it.each([
    ['without meta', { meta: undefined }, 'invalid_envelope_shape'],
    ['without an id of its own', { envelopeId: undefined }, 'invalid_envelope_shape'],
    ['without a time', { meta: { source: 'ai-generation', ts: 'noon' } }, 'invalid_envelope_shape'],
    ['from nobody', { meta: { ts: '2026-05-18T10:00:00Z' } }, 'invalid_envelope_shape'],
    ['with more than there is', { extra: 1 }, 'invalid_envelope_shape'],
    ['of a kind that nobody knows', { type: 'prd.create' }, 'unknown_envelope_kind'],
    ['of tomorrow', { schemaVersion: 2 }, 'unknown_schema_version'],
    ['with no questions', { payload: { questions: [] } }, 'envelope_invalid'],
    [
      'with a schema that is none',
      { payload: { questions: [{ ...QUESTIONS[0], schema: { type: 7 } }] } },
      'envelope_invalid',
    ],
    ['with one question twice', { payload: { questions: [QUESTIONS[0], QUESTIONS[0]] } }, 'envelope_invalid'],
  ])('is told what is wrong with one %s, and refused in the end', async (_what, more, code) => {
    const wrong = { ...clarification(), ...more };
    says(server, wrong);
    const { snapshot, events } = await finish(asking());
    expect(snapshot.error, JSON.stringify(snapshot)).toMatchObject({ code });
    expect(asks()).toHaveLength(3);
    expect(messages(1).at(-1).content).toContain(code);
    expect(types(events).filter((type) => /^(envelope|cap|interrupt|node\.failed)/.test(type))).toEqual([
      'envelope.retry.attempted',
      'envelope.retry.attempted',
      'envelope.retry.exhausted',
      'cap.breached',
      'node.failed',
    ]);
    expect(ofType(events, 'cap.breached')[0].payload).toMatchObject({ kind: 'schema', limit: 2, observed: 3 });
  });

  it('may put right what was refused', async () => {
    const { meta: _none, ...wrong } = clarification();
    const right = clarification();
    says(server, wrong, right, 'Red it is.');
    const runId = await start(asking());
    await waits(api(), runId);
    await resolve(api(), runId, 'ask', { answers: { colour: 'red' } });
    expect((await api().ended(runId)).nodeStates.ask.outputs.content).toBe('Red it is.');
    const events: Body[] = await api().events(runId);
    // Each is in the log once, although the node was called twice.
    expect(ofType(events, 'envelope.retry.attempted')).toHaveLength(1);
  });

  it('may send one again, which changes nothing; but not another under the same correlation id', async () => {
    const sent = clarification();
    says(server, sent, { ...sent, envelopeId: 'again' }, 'Well then.');
    const runId = await start(asking());
    await waits(api(), runId);
    await resolve(api(), runId, 'ask', { answers: { colour: 'red' } });
    expect((await api().ended(runId)).status).toBe('completed');
    expect(ofType(await api().events(runId), 'interrupt.requested')).toHaveLength(1);
    expect(messages(2).at(-1).content).toContain('{"colour":"red"}');

    const request = envelope('schema.request', { envelopeType: 'error' }, { correlationId: 'one' });
    says(server, request, envelope('error', { code: 'x', message: 'y' }, { correlationId: 'one' }));
    expect((await finish(asking())).snapshot.error.code).toBe('envelope_correlation_conflict');
  });

  it('may stand in a fence, in a row with others, and in an older version', async () => {
    const { schemaVersion: _none, ...old } = envelope('error', { code: 'x', message: 'No.' });
    says(server, `I cannot.\n\`\`\`json\n${JSON.stringify(old)}\n\`\`\`\nSorry.`);
    const { snapshot, events } = await finish(asking());
    expect(snapshot.nodeStates.ask.outputs.envelope.type).toBe('error');
    expect(ofType(events, 'envelope.recovery.applied')).toMatchObject([{ payload: { path: 'markdown-fence' } }]);
    expect(ofType(events, 'log.appended').map(({ payload }) => [payload.level, payload.fields.code])).toEqual([
      ['warn', 'envelope_schema_version_drift'],
      ['error', 'x'],
    ]);
  });

  it('is not read into what is no envelope', async () => {
    for (const text of ['{"type":"error","message":"x"}', '{"type":"order","payload":{},"correlationId":"c"}', '[]']) {
      says(server, text);
      expect((await finish(asking())).snapshot.nodeStates.ask.outputs.content).toBe(text);
    }
    const outputSchema = { type: 'object', required: ['envelopeId', 'payload'] };
    says(server, { type: 'letter', envelopeId: 'e', payload: 1 });
    const { snapshot } = await finish(asking('core.ai.structuredOutput', { config: { outputSchema } }));
    expect(snapshot.nodeStates.ask.outputs.data).toEqual({ type: 'letter', envelopeId: 'e', payload: 1 });
  });

  it('shows no secret, wherever the model puts it', async () => {
    const sent = clarification({ correlationId: `cor-${SECRET}` }, [
      { id: 'q', question: `Is ${SECRET} yours?`, context: { deep: [SECRET] }, schema: { title: SECRET } },
    ]);
    says(server, { ...sent, payload: { ...sent.payload, reasoning: SECRET } }, 'Fine.');
    const runId = await start(asking());
    await waits(api(), runId);
    expect(JSON.stringify(await api().events(runId))).not.toContain(SECRET);
    await resolve(api(), runId, 'ask', { answers: { q: 'no' } });
    await api().ended(runId);
    says(server, envelope('error', { code: 'x', message: SECRET, details: { [SECRET]: SECRET } }));
    const { snapshot, events } = await finish(asking());
    expect(JSON.stringify([snapshot, events, await api().events(runId)])).not.toContain(SECRET);
  });

  it('is not to be trusted when the model says so', async () => {
    const meta = { source: 'ai-generation', ts: '2026-05-18T10:00:00Z', contentTrust: 'untrusted' };
    says(server, clarification({ meta }));
    const runId = await start(asking());
    await waits(api(), runId);
    const events: Body[] = await api().events(runId);
    expect(ofType(events, 'interrupt.requested')).toMatchObject([{ contentTrust: 'untrusted' }]);
    says(server, envelope('error', { code: 'x', message: 'y' }, { meta }));
    expect(ofType((await finish(asking())).events, 'log.appended')).toMatchObject([{ contentTrust: 'untrusted' }]);
  });

  describe('under a contract', () => {
    const contract = (more: object = {}) => ({ envelopeContract: { accepts: [TICKET], ...more } });

    it('are what it accepts, and the model is told', async () => {
      says(server, envelope(TICKET, { title: 'A leak' }, { schemaVersion: 2 }));
      const { snapshot } = await finish(asking('core.ai.chatCompletion', contract()));
      expect(snapshot.nodeStates.ask.outputs.envelope.payload).toEqual({ title: 'A leak' });
      expect(messages(0)[0].role).toBe('system');
      expect(messages(0)[0].content).toContain(TICKET);
      expect(messages(0)[0].content).toContain('clarification.request');
      says(server, envelope('error', { code: 'x', message: 'y' }));
      expect((await finish(asking('core.agents.run', contract()))).snapshot.status).toBe('completed');
    });

    it('and of no other kind', async () => {
      says(server, envelope(OTHER, {}));
      for (const typeId of ['core.ai.chatCompletion', 'core.agents.run']) {
        const { snapshot } = await finish(asking(typeId, contract()));
        expect(snapshot.error).toMatchObject({
          code: 'envelope_contract_violation',
          details: { refusedType: OTHER, acceptedTypes: expect.arrayContaining([TICKET, 'error']) },
        });
      }
      says(server, envelope('vendor.nobody.knows', {}));
      const unknown = await finish(
        asking('core.ai.chatCompletion', { envelopeContract: { accepts: ['vendor.nobody.knows'] } }),
      );
      expect(unknown.snapshot.error.code).toBe('unknown_envelope_kind');
    });

    it('are discarded with a warning where it says so', async () => {
      const sent = envelope(OTHER, {});
      says(server, sent, 'Then so.');
      const { snapshot, events } = await finish(
        asking('core.ai.chatCompletion', contract({ refusalMode: 'discard-and-warn' })),
      );
      expect(snapshot.nodeStates.ask.outputs).toMatchObject({ content: 'Then so.' });
      expect(snapshot.nodeStates.ask.outputs).not.toHaveProperty('envelope');
      expect(ofType(events, 'log.appended')).toMatchObject([
        { causationId: sent.correlationId, payload: { level: 'warn' } },
      ]);
    });

    it.each([
      ['with a key that nobody knows', 'core.ai.chatCompletion', { accepts: [], refuse: 'all' }],
      ['with a mode that nobody knows', 'core.ai.chatCompletion', { accepts: [], refusalMode: 'shrug' }],
      ['without a list', 'core.ai.chatCompletion', {}],
      ['that leaves out a universal kind', 'core.ai.chatCompletion', { accepts: [], alwaysAccepted: ['error'] }],
      ['on a node that reads none', 'core.noop', { accepts: [] }],
    ])('that is none is refused: %s', async (_what, typeId, envelopeContract) => {
      const [asker] = [node('ask', typeId, { config: { provider: 'acme', model: 'talk' } })];
      const nodes: object[] = [{ ...asker, envelopeContract }];
      const { status, text } = await api().post('/v1/host/capstan/workflows', { ...workflow([]), nodes });
      expect(status, text).toBe(422);
      expect(text).toContain('nodes[0].envelopeContract');
    });
  });

  it('of an agent are kept apart from its decision, and are as little trusted as its tools', async () => {
    const unsure = { decision: 'red', confidence: 0.1 };
    server.on('talk', ({ body }, speech) => {
      const step = body.messages.filter(({ role }: Body) => role === 'assistant').length;
      if (step > 0) return speech.text(JSON.stringify(step === 1 ? clarification() : unsure)).end();
      const call = { name: 'capstan_kv_get', arguments: '{"key":"k"}' };
      speech.delta({ tool_calls: [{ index: 0, id: 'call', type: 'function', function: call }] }).end('tool_calls');
    });
    const runId = await start(asking('core.agents.run', { config: { tools: ['capstan.kv:get'] } }));
    await waits(api(), runId);
    expect(ofType(await api().events(runId), 'interrupt.requested')).toMatchObject([{ contentTrust: 'untrusted' }]);
    await resolve(api(), runId, 'ask', { answers: { colour: 'red' } });
    await api().until(runId, ({ status }) => status.startsWith('waiting-'));
    const asked = ofType(await api().events(runId), 'interrupt.requested');
    expect(asked.map(({ payload: { kind: what } }) => what)).toEqual(['clarification', 'low-confidence']);
    await resolve(api(), runId, 'ask', { action: 'accept' });
    const ended = await api().ended(runId);
    expect(ended.nodeStates.ask.outputs).toMatchObject({ result: 'red', action: 'accept', steps: 2 });
    const events: Body[] = await api().events(runId);
    expect(types(events).filter((type) => type.startsWith('agent.'))).toEqual([
      'agent.invocation.started',
      'agent.toolCalled',
      'agent.toolReturned',
      'agent.decided',
      'agent.invocation.completed',
    ]);
    expect(asks()).toHaveLength(3);
  });

  it('are replayed as they were, and the model is not asked', async () => {
    const meta = { source: 'ai-generation', ts: '2026-05-18T10:00:00Z', contentTrust: 'untrusted' };
    says(server, clarification({ meta }), 'Painted red.');
    const runId = await start(asking());
    await waits(api(), runId);
    await resolve(api(), runId, 'ask', { answers: { colour: 'red' } });
    await api().ended(runId);
    const told = async (id: string): Promise<Body[]> =>
      (await api().events(id)).map(({ type, payload, causationId = '', contentTrust }: Body) => {
        const isEnvelopes = causationId.startsWith('cor-');
        return { type, chunk: payload.chunk, data: payload.data, contentTrust, cause: isEnvelopes && causationId };
      });
    const events = await told(runId);
    const isWhole = { mode: 'replay', fromSeq: 0 };
    const isFromAnswer = { mode: 'replay', fromSeq: events.findIndex(({ type }) => type === 'interrupt.resolved') };
    server.on('talk', (_asked, speech) => speech.text('Who asks?').end());
    for (const fork of [isWhole, isFromAnswer]) {
      const { body } = await api().post(`/v1/runs/${runId}:fork`, fork);
      expect((await api().ended(body.runId)).status).toBe('completed');
      expect(await told(body.runId)).toEqual(events);
    }
    expect(asks()).toHaveLength(0);
  });

  it('are open in a branch, where they are answered anew', async () => {
    const sent = clarification();
    says(server, sent, 'Painted red.');
    const runId = await start(asking());
    await waits(api(), runId);
    const fromSeq = (await api().events(runId)).length;
    const { body } = await api().post(`/v1/runs/${runId}:fork`, { mode: 'branch', fromSeq });
    await waits(api(), body.runId);
    expect((await resolve(api(), body.runId, 'ask', { answers: { colour: 'blue' } })).status).toBe(200);
    expect((await api().ended(body.runId)).nodeStates.ask.outputs.content).toBe('Painted red.');
    expect(asks().at(-1)!.body.messages.at(-1).content).toContain('{"colour":"blue"}');
    const events: Body[] = await api().events(body.runId);
    expect(ofType(events, 'interrupt.requested')).toMatchObject([{ causationId: sent.correlationId }]);
    expect((await api().get(`/v1/runs/${runId}`)).body.status).toBe('waiting-input');
  });

  it('have schemas that are served', async () => {
    const { supportedEnvelopes, schemaVersions, envelopeContracts } = (await api().get('/.well-known/openwop')).body;
    expect(supportedEnvelopes).toEqual([
      'clarification.request',
      'schema.request',
      'schema.response',
      'error',
      TICKET,
      OTHER,
    ]);
    expect(schemaVersions).toMatchObject({ 'clarification.request': 1, [TICKET]: 2 });
    expect(envelopeContracts).toEqual({ advertised: true });
    for (const name of supportedEnvelopes) {
      const { status, headers, body } = await host.anonymous.get(`/schemas/envelopes/${name}.schema.json`);
      expect(status).toBe(200);
      expect(headers.get('content-type')).toContain('application/schema+json');
      expect(body).toMatchObject({ title: name, type: 'object' });
    }
    for (const file of ['vendor.nobody.knows.schema.json', 'error', '__proto__.schema.json', '.schema.json']) {
      expect((await host.anonymous.get(`/schemas/envelopes/${file}`)).status).toBe(404);
    }
  });
});

describe.each(storesFor('a host that dies around a clarification'))(
  'a host that dies around a clarification, on %s',
  (kind) => {
    const { start, kill, newStore } = killableHosts();
    let server: ModelServer;
    beforeAll(async () => {
      server = await ModelServer.open();
    });
    afterAll(() => server.close());

    it('is followed by one that asks nothing twice', async () => {
      const environment = {
        ...(await newStore(kind)),
        CAPSTAN_LEASE_MS: '900',
        CAPSTAN_MODELS: JSON.stringify(providers(server)),
      };
      let host: HostProcess;
      const begin = async (): Promise<Api> => {
        host = await start(environment);
        return host.as('reviewer');
      };
      // While the model is thinking about its first envelope.
      const first = await begin();
      const thinking = new Promise<void>((asked) => {
        server.on('talk', () => asked());
      });
      const workflowId = await register(first, workflow([asking()]));
      const runId = await first.run(workflowId, { inputs: { prompt: 'Paint it.' } });
      await thinking;
      await kill(host!);
      // While the person is thinking.
      says(server, envelope('schema.response', { envelopeType: 'error', ack: true }), clarification());
      const second = await begin();
      await waits(second, runId);
      await kill(host!);
      // After the answer, while the model is thinking about what it means.
      const third = await begin();
      await waits(third, runId);
      expect(asksIn(server)).toBe(2);
      const pondering = new Promise<void>((asked) => {
        server.on('talk', () => asked());
      });
      expect((await resolve(third, runId, 'ask', { answers: { colour: 'red' } })).status).toBe(200);
      await pondering;
      await kill(host!);
      says(server, {}, {}, 'Painted red.');
      const last = await begin();
      const ended = await last.ended(runId);
      expect(ended.nodeStates.ask.outputs.content).toBe('Painted red.');
      const events: Body[] = await last.events(runId);
      expect(ofType(events, 'interrupt.requested')).toHaveLength(1);
      expect(ofType(events, 'clarification.requested')).toHaveLength(1);
      expect(ofType(events, 'log.appended')).toHaveLength(1);
      expect(asksIn(server)).toBe(1);
    });
  },
);

function asksIn(server: ModelServer): number {
  return server.asked('talk').length;
}
