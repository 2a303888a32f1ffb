import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { everythingAtRest } from '../support/at-rest.ts';
import { freshDatabase, freshFolder } from '../support/database.ts';
import { fixed, line, node, register, unique, workflow } from '../support/definitions.ts';
import { KEYS, startHostWith, type TestHost } from '../support/host.ts';
import { killableHosts } from '../support/killed.ts';
import { ModelServer } from '../support/model-server.ts';
import { storesFor } from '../support/stores.ts';
import { Stream } from '../support/stream.ts';
import { until } from '../support/until.ts';

/**
 * Goal: models that an operator configures are asked as workflows say, and what they do is told as the protocol says.
 * Method: a host, and a server of models on this machine that behaves in every way servers do.
 */

type Body = Answer['body'];

const SECRET = 'Leuchtturm-waerter_0815';
const SCHEMA = { type: 'object', required: ['valid'], properties: { valid: { type: 'boolean' } } };
const SCRIPT = {
  answers: [
    { when: { contains: 'weather' }, content: 'It rains.', usage: { inputTokens: 30, outputTokens: 20 } },
    { content: 'You said: {{message}}', usage: { inputTokens: 4, outputTokens: 6 } },
  ],
};
const MODELS = ['talk', 'slow', 'odd', 'busy', 'down', 'strict', 'leaky'];

const types = (events: readonly Body[]): string[] => events.map(({ type }) => type);
const payloads = (events: readonly Body[], type: string): Body[] =>
  events.filter((event) => event.type === type).map(({ payload }) => payload);

describe.each(storesFor('models'))('models, on %s', (kind) => {
  const folder = freshFolder();
  let server: ModelServer;
  let host: TestHost;
  let databaseUrl: string | undefined;

  beforeAll(async () => {
    server = await ModelServer.open();
    const script = join(folder.path, 'script.json');
    writeFileSync(script, JSON.stringify(SCRIPT));
    databaseUrl = kind === 'postgres' ? await freshDatabase(inject('postgresUrl')) : undefined;
    host = await startHostWith({
      CAPSTAN_CONFORMANCE: '0',
      CAPSTAN_DATA: join(folder.path, 'data'),
      CAPSTAN_LOG: 'trace',
      ACME_KEY: SECRET,
      CAPSTAN_MODELS: JSON.stringify([
        {
          provider: 'acme',
          kind: 'openai-compatible',
          baseUrl: server.url,
          credentialRef: 'ACME_KEY',
          models: MODELS,
          prices: { talk: { input: 1_000, output: 2_000 } },
          timeoutMs: 20_000,
        },
        {
          provider: 'hasty',
          kind: 'openai-compatible',
          baseUrl: server.url,
          credentialRef: 'ACME_KEY',
          models: ['slow'],
          timeoutMs: 1_000,
        },
        { provider: 'play', kind: 'scripted', script, models: ['small', 'large'] },
      ]),
      ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
    });
  });
  afterAll(async () => {
    await host?.stop();
    server.close();
    folder.remove();
  });

  const api = (): Api => host.as('editor');
  const asking = (model: string, config: object = {}, typeId = 'core.ai.chatCompletion', more: object = {}) =>
    node('ask', typeId, { config: { provider: 'acme', model, ...config }, inputs: {}, ...more });
  const start = async (nodes: ReturnType<typeof node>[], options: object = {}): Promise<string> =>
    api().run(await register(api(), workflow(nodes, line(...nodes.map(({ id }) => id)))), {
      inputs: { prompt: 'Say hello.' },
      ...options,
    });
  const ended = async (runId: string) => ({ snapshot: await api().ended(runId), events: await api().events(runId) });
  const finish = async (nodes: ReturnType<typeof node>[], options: object = {}) => ended(await start(nodes, options));

  it('are advertised by the names of their providers, with nothing of their credentials', async () => {
    const { body, text } = await api().get('/.well-known/openwop');
    expect(body.aiProviders).toEqual({ supported: ['acme', 'hasty', 'play'], byok: [] });
    expect(body.providerUsage).toMatchObject({ supported: true, costEstimates: true });
    expect(body.budget).toMatchObject({ supported: true, enforce: 'hard', scopes: ['run'] });
    expect(text).not.toMatch(/ACME_KEY|127\.0\.0\.1:\d+\/v1/);
  });

  describe('over the network', () => {
    it('are asked as the run says, whatever the workflow does', async () => {
      server.on('slow', (_asked, speech) => speech.text('Hello.').end());
      const before = server.asked('slow').length;
      for (const configurable of [
        { model: 'slow', temperature: 1.5, maxTokens: 70 },
        { model: 'talk', ai: { provider: 'acme', model: 'slow' }, temperature: 1.5, maxTokens: 70 },
      ]) {
        await finish([asking('talk', { temperature: 0.5, maxTokens: 50 })], { configurable });
      }
      const bodies = server
        .asked('slow')
        .slice(before)
        .map(({ body }) => body);
      expect(bodies).toHaveLength(2);
      for (const body of bodies) expect(body).toMatchObject({ model: 'slow', temperature: 1.5, max_tokens: 70 });
    });

    it('are asked what the workflow says, with the key of the host', async () => {
      server.on('talk', (_asked, speech) => speech.text('Hello.').end());
      const config = { systemPrompt: 'Be brief.', temperature: 0.5, maxTokens: 50, stopSequences: ['END'] };
      const { snapshot } = await finish([asking('talk', config)]);
      expect(snapshot.nodeStates.ask.outputs).toEqual({
        content: 'Hello.',
        finishReason: 'stop',
        model: 'talk',
        usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 },
      });
      const [asked, ...more] = server.asked('talk');
      expect(more).toEqual([]);
      expect(asked!.path).toBe('/v1/chat/completions');
      expect(asked!.headers.authorization).toBe(`Bearer ${SECRET}`);
      expect(asked!.headers['idempotency-key']).toMatch(/^[\w-]{43}$/);
      expect(asked!.body).toMatchObject({
        model: 'talk',
        temperature: 0.5,
        max_tokens: 50,
        stop: ['END'],
        stream: true,
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Say hello.' },
        ],
      });
    });

    it('are heard while they speak, and the last piece tells how it ended', async () => {
      let goOn = (): void => {};
      const isHeard = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      server.on('talk', async (_asked, speech) => {
        speech.text('The first words ');
        await isHeard;
        speech.text('and the last.').end();
      });
      const runId = await start([asking('talk')]);
      const stream = await Stream.open(`${host.url}/v1/runs/${runId}/events?streamMode=messages`, KEYS.editor.key);
      await stream.until((frames) => frames.length > 0);
      expect(JSON.parse(stream.frames[0]!.data!)).toMatchObject({ chunk: 'The first words ', isLast: false });
      expect((await api().get(`/v1/runs/${runId}`)).body.status).toBe('running');
      goOn();
      await stream.ended();
      const chunks = stream.frames.map(({ data }) => JSON.parse(data!));
      expect(stream.frames.every(({ event }) => event === 'ai.message.chunk')).toBe(true);
      expect(chunks.map(({ chunk }) => chunk).join('')).toBe('The first words and the last.');
      expect(chunks.map(({ isLast }) => isLast)).toEqual(chunks.map((_chunk, index) => index === chunks.length - 1));
      expect(chunks.at(-1).meta).toEqual({
        model: 'talk',
        provider: 'acme',
        finishReason: 'stop',
        usage: { promptTokens: 10, completionTokens: 5, totalTokens: 15 },
      });
    });

    it('say once for each call what it took, before the node is done', async () => {
      server.on('talk', (_asked, speech) => speech.text('Hello.').end('stop', [1_000, 500]));
      const { events } = await finish([asking('talk')]);
      expect(payloads(events, 'provider.usage')).toEqual([
        {
          provider: 'acme',
          model: 'talk',
          inputTokens: 1_000,
          outputTokens: 500,
          totalTokens: 1_500,
          costEstimateUsd: 2,
          currency: 'USD',
          nodeId: 'ask',
        },
      ]);
      expect(types(events).indexOf('provider.usage')).toBeLessThan(types(events).indexOf('node.completed'));
    });

    it('are told what the prompts of the library come to', async () => {
      const template = { templateId: unique('greeting'), version: '1.0.0', kind: 'user', text: 'Greet {{who}}.' };
      const variables = [{ name: 'who', type: 'string', required: true }];
      expect((await api().post('/v1/prompts', { ...template, variables })).status).toBe(201);
      server.on('talk', (_asked, speech) => speech.text('Hello.').end());
      const config = { userPromptRef: `prompt:${template.templateId}`, model: 'talk' };
      const { events } = await finish([node('ask', 'core.ai.callPrompt', { config })], {
        inputs: { who: 'the world', prompt: 'not this' },
      });
      const [{ body }] = server.asked('talk') as [Body];
      expect(body.messages).toEqual([{ role: 'user', content: expect.stringMatching(/^Greet .*the world/s) }]);
      expect(types(events).indexOf('prompt.composed')).toBeLessThan(types(events).indexOf('output.chunk'));
    });

    it('may ask for tools, which is told as data', async () => {
      server.on('talk', (_asked, speech) => {
        speech.delta({
          tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 'search', arguments: '' } }],
        });
        for (const part of ['{"q":', '"rain"}']) {
          speech.delta({ tool_calls: [{ index: 0, function: { arguments: part } }] });
        }
        speech.end('tool_calls');
      });
      const tools = [{ name: 'search', description: 'Searches', inputSchema: { type: 'object' } }];
      const { snapshot } = await finish([asking('talk', { tools, toolChoice: 'required' }, 'core.ai.toolCalling')]);
      expect(snapshot.nodeStates.ask.outputs).toMatchObject({
        finishReason: 'tool-call',
        toolCalls: [{ id: 'c1', name: 'search', arguments: { q: 'rain' } }],
      });
      const [{ body }] = server.asked('talk') as [Body];
      expect(body.tools).toEqual([
        { type: 'function', function: { name: 'search', description: 'Searches', parameters: { type: 'object' } } },
      ]);
      expect(body.tool_choice).toBe('required');
    });

    it('are asked again when they are busy, after as long as they say', async () => {
      server.on('busy', (_asked, speech) => {
        if (server.asked('busy').length < 3) speech.error(429, 'slow down', { 'retry-after': '0' });
        else speech.text('At last.').end();
      });
      const { snapshot, events } = await finish([asking('busy')]);
      expect(snapshot.nodeStates.ask.outputs.content).toBe('At last.');
      expect(new Set(server.asked('busy').map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
      expect(payloads(events, 'provider.usage')).toHaveLength(1);
    });

    it.each([
      ['busy', 429, 'provider_rate_limited', 3],
      ['down', 503, 'provider_unavailable', 3],
      ['strict', 400, 'provider_rejected', 1],
      ['strict', 401, 'provider_rejected', 1],
    ] as const)('fail the node when %s says %i', async (model, status, code, times) => {
      server.on(model, (_asked, speech) => speech.error(status, `Your key ${SECRET} is odd`, { 'retry-after': '0' }));
      const { snapshot, events } = await finish([asking(model)]);
      expect(snapshot).toMatchObject({
        status: 'failed',
        error: { code, details: { provider: 'acme', model, status } },
      });
      expect(snapshot.error.message).toContain('[REDACTED:ACME_KEY]');
      expect(server.asked(model)).toHaveLength(times);
      expect(types(events)).not.toContain('provider.usage');
    });

    it('are tried again by a node that may be', async () => {
      server.on('strict', (_asked, speech) => {
        if (server.asked('strict').length <= 3) speech.error(500, 'not now', { 'retry-after': '0' });
        else speech.text('whole').end();
      });
      const { snapshot, events } = await finish([
        asking('strict', {}, undefined, { settings: { retry: { maxRetries: 1, delayMs: 1 } } }),
      ]);
      expect(snapshot.nodeStates.ask.outputs.content).toBe('whole');
      expect(payloads(events, 'node.retried')[0].lastError).toMatchObject({ code: 'provider_unavailable' });
    });

    it.each([
      [
        'nonsense',
        (speech: Body) =>
          speech.response.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: {"choi\n\n'),
      ],
      ['no end', (speech: Body) => speech.text('and then').response.end()],
      [
        'something else',
        (speech: Body) => speech.response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
      ],
    ])('fail the node when they say %s', async (_what, behave) => {
      server.on('odd', (_asked, speech) => behave(speech));
      const { snapshot } = await finish([asking('odd')]);
      expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'provider_unavailable' } });
    });

    it('fail the node when they take too long, without being asked again', async () => {
      server.on('slow', (_asked, speech) => void speech.text('I am thinking '));
      const { snapshot } = await finish([asking('slow', { provider: 'hasty' })]);
      expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'provider_unavailable' } });
      expect(server.asked('slow')).toHaveLength(1);
    });

    it('are let go of when the run is cancelled', async () => {
      const gone = new Promise<void>((resolve) => {
        server.on('slow', (_asked, speech) => {
          speech.response.on('close', () => resolve());
          speech.text('I am thinking ');
        });
      });
      const runId = await start([asking('slow')]);
      await until(
        async () => server.asked('slow'),
        ({ length }) => length > 0,
      );
      await api().post(`/v1/runs/${runId}/cancel`);
      await gone;
      expect((await api().ended(runId)).status).toBe('cancelled');
    });

    it('are let go of when the time of the run is up, which is told as it is of any run', async () => {
      const gone = new Promise<void>((resolve) => {
        server.on('slow', (_asked, speech) => {
          speech.response.on('close', () => resolve());
          speech.text('I am thinking ');
        });
      });
      // Where the time is up before anybody was asked, there is nobody to let go of: the next run gets more.
      const cutOff = async (runTimeoutMs: number): Promise<{ limit: number } & Awaited<ReturnType<typeof finish>>> => {
        const ran = await finish([asking('slow')], { configurable: { runTimeoutMs } });
        return server.asked('slow').length > 0 ? { ...ran, limit: runTimeoutMs } : cutOff(2 * runTimeoutMs);
      };
      const { snapshot, events, limit } = await cutOff(300);
      await gone;
      expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'run_timeout' } });
      const [breach] = payloads(events, 'cap.breached');
      expect(breach).toMatchObject({ kind: 'run-duration', limit });
      expect(breach.observed).toBeGreaterThan(limit);
    });

    it('are asked once: a replay repeats their answers and asks nobody, a branch asks again', async () => {
      server.on('talk', (_asked, speech) => speech.text(`Answer ${server.asked('talk').length}.`).end());
      const runId = await start([asking('talk'), asking('talk', {}, undefined, { id: 'again' })]);
      const source = await ended(runId);
      expect(source.snapshot.nodeStates.again.outputs.content).toBe('Answer 2.');
      for (const fromSeq of [0, 2, 4]) {
        const fork = await api().post(`/v1/runs/${runId}:fork`, { mode: 'replay', fromSeq });
        const replay = await ended(fork.body.runId);
        expect(replay.snapshot.nodeStates).toEqual(
          Object.fromEntries(
            Object.entries(source.snapshot.nodeStates).map(([id, { outputs }]: [string, Body]) => [
              id,
              expect.objectContaining({ outputs }),
            ]),
          ),
        );
        expect(types(replay.events)).toEqual(types(source.events));
        expect(payloads(replay.events, 'provider.usage')).toEqual(payloads(source.events, 'provider.usage'));
      }
      expect(server.asked('talk')).toHaveLength(2);
      const branch = await api().post(`/v1/runs/${runId}:fork`, { mode: 'branch', fromSeq: 0 });
      expect((await ended(branch.body.runId)).snapshot.nodeStates.again.outputs.content).toBe('Answer 4.');
    });

    it('cannot tell their key to anybody, however they try', async () => {
      server.on('leaky', (asked, speech) => {
        const key = asked.headers.authorization!.replace('Bearer ', '');
        for (const part of ['The key is ', key.slice(0, 6), key.slice(6, 14), key.slice(14), ' and ', `x${key}x`]) {
          speech.text(part);
        }
        const call = { name: 'mail', arguments: JSON.stringify({ body: key }) };
        speech.delta({ tool_calls: [{ index: 0, id: 'c', type: 'function', function: call }] }).end('tool_calls');
      });
      const { snapshot } = await finish([asking('leaky')]);
      expect(snapshot.nodeStates.ask.outputs.content).toBe('The key is [REDACTED:ACME_KEY] and x[REDACTED:ACME_KEY]x');
    });
  });

  describe('asked for JSON', () => {
    const structured = (model: string, config: object = {}) =>
      asking(model, { outputSchema: SCHEMA, ...config }, 'core.ai.structuredOutput');

    it('are given the schema, and what they say is checked', async () => {
      server.on('talk', (_asked, speech) => speech.text('{"valid":').text(' true}').end());
      const { snapshot, events } = await finish([structured('talk')]);
      expect(snapshot.nodeStates.ask.outputs).toMatchObject({ data: { valid: true }, retries: 0, model: 'talk' });
      expect((server.asked('talk') as Body)[0].body.response_format.json_schema.schema).toEqual(SCHEMA);
      expect(types(events).filter((type) => type.startsWith('envelope.'))).toEqual([]);
    });

    it('are asked again with what the validator says, and what is around JSON is taken off', async () => {
      const answers = ['{"valid": "yes"}', 'Of course:\n```json\n{"valid": true}\n```'];
      server.on('talk', (_asked, speech) => speech.text(answers[server.asked('talk').length - 1]!).end());
      const { snapshot, events } = await finish([structured('talk')]);
      expect(snapshot.nodeStates.ask.outputs).toMatchObject({
        data: { valid: true },
        retries: 1,
        usage: { inputTokens: 20, outputTokens: 10 },
      });
      expect(payloads(events, 'envelope.retry.attempted')).toEqual([
        { nodeId: 'ask', attempt: 2, reason: 'schema-violation', previousError: expect.stringContaining('/valid') },
      ]);
      expect(payloads(events, 'envelope.recovery.applied')).toEqual([
        { nodeId: 'ask', path: 'markdown-fence', byteOffset: 19 },
      ]);
      const { messages } = (server.asked('talk') as Body)[1].body;
      expect(messages.at(-1)).toMatchObject({ role: 'user', content: expect.stringContaining('/valid') });
    });

    it('are given up after three answers that do not fit', async () => {
      server.on('talk', (_asked, speech) => speech.text('no JSON here').end());
      const { snapshot, events } = await finish([structured('talk')]);
      expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'envelope_invalid' } });
      expect(server.asked('talk')).toHaveLength(3);
      expect(payloads(events, 'envelope.retry.attempted').map(({ attempt }) => attempt)).toEqual([2, 3]);
      expect(payloads(events, 'envelope.retry.exhausted')).toEqual([
        { nodeId: 'ask', totalAttempts: 3, finalReason: 'parse-error', finalError: expect.any(String) },
      ]);
      expect(payloads(events, 'cap.breached')).toEqual([{ kind: 'schema', limit: 2, observed: 3, nodeId: 'ask' }]);
      const order = types(events).filter((type) => /exhausted|breached|node\.failed|run\.failed/.test(type));
      expect(order).toEqual(['envelope.retry.exhausted', 'cap.breached', 'node.failed', 'run.failed']);
    });

    it('are given more room when an answer was cut off, and no correction', async () => {
      server.on('talk', (_asked, speech) => {
        if (server.asked('talk').length === 1) speech.text('{"val').end('length');
        else speech.text('{"valid":true}').end();
      });
      const { snapshot, events } = await finish([structured('talk', { maxTokens: 40 })]);
      expect(snapshot.nodeStates.ask.outputs.data).toEqual({ valid: true });
      const bodies = server.asked('talk').map(({ body }) => body);
      expect(bodies.map(({ max_tokens }) => max_tokens)).toEqual([40, 80]);
      expect(bodies[1].messages).toEqual(bodies[0].messages);
      expect(payloads(events, 'envelope.truncated')).toEqual([
        {
          nodeId: 'ask',
          provider: 'acme',
          model: 'talk',
          stopReason: 'length',
          partialPayloadAvailable: true,
          outputTokenCount: 5,
        },
      ]);
    });

    it('that never come to an end fail the node with that', async () => {
      server.on('talk', (_asked, speech) => speech.text('{"val').end('length'));
      const { snapshot, events } = await finish([structured('talk')]);
      expect(snapshot.error.code).toBe('envelope_truncation_unrecoverable');
      expect(payloads(events, 'envelope.truncated')).toHaveLength(3);
      expect(payloads(events, 'envelope.retry.exhausted')[0].finalReason).toBe('truncation');
    });

    it('may refuse: that is told once, not asked again, and not repeated in the error', async () => {
      server.on('talk', (_asked, speech) => speech.delta({ refusal: 'I would rather not.' }).end());
      const { snapshot, events } = await finish([structured('talk')]);
      expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'envelope_refusal' } });
      expect(JSON.stringify(snapshot.error)).not.toContain('rather');
      expect(payloads(events, 'envelope.refusal')).toEqual([
        { nodeId: 'ask', provider: 'acme', model: 'talk', refusalText: 'I would rather not.' },
      ]);
      expect(server.asked('talk')).toHaveLength(1);
    });
  });

  describe('with a script', () => {
    const scripted = (id: string, message: string, more: object = {}) =>
      node(id, 'core.ai.chatCompletion', {
        config: { provider: 'play', model: 'small' },
        inputs: { prompt: fixed(message) },
        ...more,
      });

    it('answer the same without a network, also to a prompt node that names nobody', async () => {
      const { snapshot } = await finish([scripted('ask', 'How is the weather?')]);
      expect(snapshot.nodeStates.ask.outputs.content).toBe('It rains.');
      const prompted = await finish([node('ask', 'core.ai.callPrompt', { inputs: { prompt: fixed('x') } })], {
        configurable: { ai: { provider: 'play', model: 'large' } },
      });
      expect(prompted.snapshot.nodeStates.ask.outputs).toMatchObject({ content: 'You said: x', model: 'large' });
    });

    it('are asked as the run says, where it says something else than the node', async () => {
      const { snapshot } = await finish([asking('talk')], { configurable: { ai: { provider: 'play' } } });
      expect(snapshot.nodeStates.ask.outputs).toMatchObject({ content: 'You said: Say hello.', model: 'small' });
    });

    it.each([
      ['a model that is not offered', { ai: { model: 'huge' } }, 'provider_policy_denied'],
      ['a model that the budget denies', { budget: { modelDeny: ['sma*'] } }, 'budget_model_denied'],
      ['a model that the budget does not allow', { budget: { modelAllow: ['large'] } }, 'budget_model_denied'],
    ])('are not asked for %s', async (_what, configurable, code) => {
      const { snapshot, events } = await finish([scripted('ask', 'x')], { configurable });
      expect(snapshot).toMatchObject({ status: 'failed', error: { code } });
      expect(types(events)).not.toContain('provider.usage');
    });

    it('are free where cost is limited, while others need a price', async () => {
      const configurable = { budget: { maxCostUsd: 0.01 } };
      const { snapshot } = await finish([scripted('ask', 'weather')], { configurable });
      expect(snapshot).toMatchObject({ status: 'completed' });
      const unpriced = scripted('ask', 'x', { config: { provider: 'acme', model: 'odd' } });
      const refused = await finish([unpriced], { configurable });
      expect(refused.snapshot).toMatchObject({ status: 'failed', error: { code: 'budget_model_denied' } });
      expect(refused.snapshot.error.message).toContain('CAPSTAN_MODELS');
      expect(types(refused.events)).not.toContain('provider.usage');
    });

    it('are asked as long as there are tokens, and not once more', async () => {
      const nodes = ['one', 'two', 'three'].map((id) => scripted(id, 'weather'));
      const { snapshot, events } = await finish(nodes, {
        configurable: { budget: { maxTokens: 100, thresholdPercent: 50 } },
      });
      expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'budget_exhausted' } });
      expect(payloads(events, 'budget.reserved')).toEqual([{ effectiveBudget: { maxTokens: 100 }, scope: 'run' }]);
      expect(payloads(events, 'budget.consumed')).toEqual([
        { dimension: 'tokens', consumed: 50, limit: 100, remaining: 50 },
        { dimension: 'tokens', consumed: 100, limit: 100, remaining: 0 },
      ]);
      expect(payloads(events, 'budget.threshold.crossed')).toEqual([
        { dimension: 'tokens', consumed: 50, limit: 100, percent: 50 },
      ]);
      expect(payloads(events, 'budget.exhausted')).toEqual([{ dimension: 'tokens', consumed: 100, limit: 100 }]);
      expect(payloads(events, 'provider.usage')).toHaveLength(2);
      const [breach, ...more] = payloads(events, 'cap.breached');
      expect(more).toEqual([]);
      expect(breach).toMatchObject({ kind: 'budget-tokens', limit: 100, nodeId: 'three' });
      expect(breach.observed).toBeGreaterThan(100);
      expect(types(events).indexOf('budget.exhausted')).toBeLessThan(types(events).indexOf('cap.breached'));
      expect(types(events).indexOf('cap.breached')).toBeLessThan(types(events).indexOf('run.failed'));
      expect(types(events).indexOf('budget.reserved')).toBe(1);
    });

    it('stop a run at once that has spent more than it may', async () => {
      const nodes = [scripted('one', 'weather'), node('two')];
      const { snapshot, events } = await finish(nodes, { configurable: { budget: { maxTokens: 40 } } });
      expect(snapshot.error.code).toBe('budget_exhausted');
      expect(payloads(events, 'cap.breached')).toEqual([{ kind: 'budget-tokens', limit: 40, observed: 50 }]);
      expect(types(events).filter((type) => type === 'node.started')).toHaveLength(1);
    });

    it('take turns where there is a budget: of many at once, only those are asked that it pays for', async () => {
      const nodes = Array.from({ length: 6 }, (_, index) => scripted(`n${index}`, 'weather'));
      const id = await register(api(), workflow(nodes));
      const { snapshot, events } = await ended(await api().run(id, { configurable: { budget: { maxTokens: 150 } } }));
      expect(snapshot.error.code).toBe('budget_exhausted');
      expect(payloads(events, 'provider.usage')).toHaveLength(3);
      expect(payloads(events, 'cap.breached')).toHaveLength(1);
    });

    it('are replayed with their budget, to the same end', async () => {
      const nodes = ['one', 'two'].map((name) => scripted(name, 'weather'));
      const runId = await start(nodes, { configurable: { budget: { maxTokens: 60, thresholdPercent: 10 } } });
      const source = await ended(runId);
      expect(source.snapshot.error.code).toBe('budget_exhausted');
      for (let fromSeq = 0; fromSeq < source.events.length; fromSeq++) {
        const fork = await api().post(`/v1/runs/${runId}:fork`, { mode: 'replay', fromSeq });
        const replay = await ended(fork.body.runId);
        expect(replay.events.map(({ type, payload }) => [type, payload.consumed, payload.observed])).toEqual(
          source.events.map(({ type, payload }) => [type, payload.consumed, payload.observed]),
        );
      }
    });
  });

  it('have a limit on cost kept to a part of a cent', async () => {
    server.on('talk', (_asked, speech) => speech.text('Hello.').end('stop', [100, 50]));
    const nodes = ['one', 'two'].map((id) => asking('talk', {}, undefined, { id }));
    const { snapshot, events } = await finish(nodes, { configurable: { budget: { maxCostUsd: 0.2 } } });
    expect(snapshot.error.code).toBe('budget_exhausted');
    expect(payloads(events, 'budget.exhausted')).toEqual([{ dimension: 'cost', consumed: 0.2, limit: 0.2 }]);
    expect(payloads(events, 'cap.breached')[0]).toMatchObject({ kind: 'budget-cost', limit: 0.2, nodeId: 'two' });
    expect(payloads(events, 'cap.breached')[0].observed).toBeGreaterThan(0.2);
    expect((server.asked('talk') as Body)[0].body.max_tokens).toBe(98);
    expect(server.asked('talk')).toHaveLength(1);
  });

  it('have retries counted, and none beyond the limit', async () => {
    server.on('talk', (_asked, speech) => speech.text('no JSON').end());
    const nodes = [asking('talk', { outputSchema: SCHEMA }, 'core.ai.structuredOutput')];
    const { snapshot, events } = await finish(nodes, { configurable: { budget: { maxRetries: 1 } } });
    expect(snapshot.error.code).toBe('budget_exhausted');
    expect(server.asked('talk')).toHaveLength(2);
    expect(payloads(events, 'cap.breached')).toEqual([{ kind: 'budget-retries', limit: 1, observed: 2 }]);
  });

  it.each([
    [{ ai: { provider: 'nobody' } }, 400, 'validation_error'],
    [{ ai: { provider: 'acme', credentialRef: 'cred_mine' } }, 403, 'credential_forbidden'],
    [{ budget: { maxTokens: 0 } }, 400, 'validation_error'],
    [{ budget: { maxWallTimeMs: 5 } }, 400, 'validation_error'],
    [{ budget: { maxToolCalls: 0 } }, 400, 'validation_error'],
    [{ budget: { onExhaustion: 'interrupt' } }, 422, 'capability_required'],
  ])('refuse a run with %j', async (configurable, status, error) => {
    const workflowId = await register(api(), workflow([node('a')]));
    const answer = await api().post('/v1/runs', { workflowId, configurable });
    expect([answer.status, answer.body.error]).toEqual([status, error]);
  });

  it('refuse a definition whose schema is none', async () => {
    const config = { outputSchema: { type: 'shape' } };
    const answer = await api().post(
      '/v1/host/capstan/workflows',
      workflow([asking('talk', config, 'core.ai.structuredOutput')]),
    );
    expect(answer.status).toBe(422);
    expect(answer.text).toContain('outputSchema');
  });

  it('leave no trace of their credentials: not in the log, not at rest', async () => {
    const output = host.output();
    expect(output.split('\n').length).toBeGreaterThan(50);
    expect(output).not.toContain(SECRET);
    const kept = await everythingAtRest(join(folder.path, 'data'), databaseUrl);
    expect(kept).toContain('provider.usage');
    expect(kept).not.toContain(SECRET);
    for (const part of ['Leuchtturm', 'waerter_0815']) expect(kept).not.toContain(part);
  });
});

describe.each(storesFor('a host that dies while a model speaks'))(
  'a host that dies while a model speaks, on %s',
  (kind) => {
    const { start, follow, kill, newStore } = killableHosts();

    it('leaves a run that another finishes, which is counted once', async () => {
      const server = await ModelServer.open();
      const environment = {
        ...(await newStore(kind)),
        CAPSTAN_LEASE_MS: '2000',
        CAPSTAN_MODELS: JSON.stringify([
          { provider: 'acme', kind: 'openai-compatible', baseUrl: server.url, models: ['talk'] },
        ]),
      };
      const first = await start(environment);
      server.on('talk', (_asked, speech) => {
        if (server.asked('talk').length === 1) speech.text('I was about to ');
        else speech.text('Here it is.').end();
      });
      const ask = node('ask', 'core.ai.chatCompletion', { config: { provider: 'acme', model: 'talk' } });
      const workflowId = await register(first.as('editor'), workflow([ask]));
      const runId = await first.as('editor').run(workflowId, { inputs: { prompt: 'Well?' } });
      const stream = await Stream.open(`${first.url}/v1/runs/${runId}/events?streamMode=messages`, KEYS.editor.key);
      await stream.until((frames) => frames.length > 0);
      await kill(first);
      const api = (await follow(environment)).as('editor');
      const snapshot = await api.ended(runId);
      const events = await api.events(runId);
      server.close();
      expect(snapshot.nodeStates.ask.outputs.content).toBe('Here it is.');
      expect(new Set(server.asked('talk').map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
      expect(server.asked('talk')).toHaveLength(2);
      expect(payloads(events, 'provider.usage')).toHaveLength(1);
    });
  },
);

describe('a host whose models cannot be', () => {
  it.each([
    [
      'settings that make no sense',
      '[{"provider":"a","kind":"openai-compatible","models":["m"]}]',
      /CAPSTAN_MODELS\[0\]\.baseUrl/,
    ],
    [
      'a script that is not there',
      '[{"provider":"a","kind":"scripted","script":"/nowhere.json","models":["m"]}]',
      /script \/nowhere\.json/,
    ],
  ])('does not start: %s', async (_what, models, message) => {
    const folder = freshFolder();
    const starting = startHostWith({ CAPSTAN_DATA: folder.path, CAPSTAN_MODELS: models });
    await expect(starting).rejects.toThrow(message);
    folder.remove();
  });
});
