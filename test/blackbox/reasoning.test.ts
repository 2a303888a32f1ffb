import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { node, register, workflow } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { killableHosts } from '../support/killed.ts';
import { ModelServer, type Speech } from '../support/model-server.ts';
import { storesFor } from '../support/stores.ts';
import { until } from '../support/until.ts';

/**
 * Goal: what a model thinks before it answers is in the log while it thinks, and afterwards as a whole.
 * Method: real hosts, and a server of models that streams its thoughts and waits where the test wants it to.
 */

type Body = Answer['body'];

const DECISION = JSON.stringify({ decision: 'billing', confidence: 0.9 });
const THOUGHTS = ['An invoice. ', 'So billing has it. '];

const payloads = (events: readonly Body[], type: string): Body[] =>
  events.filter((event) => event.type === type).map(({ payload }) => payload);
const deltasOf = (events: readonly Body[]): string[] =>
  payloads(events, 'agent.reasoning.delta').map(({ delta }) => delta);
const think = (speech: Speech, text: string): Speech => speech.delta({ reasoning_content: text });
const models = (server: ModelServer, names: string[]) => [
  {
    provider: 'acme',
    kind: 'openai-compatible' as const,
    baseUrl: server.url,
    models: names,
    prices: {},
    timeoutMs: 60_000,
  },
];
const agent = (model: string, more: object = {}) =>
  workflow([node('agent', 'core.agents.run', { config: { provider: 'acme', model, systemPrompt: 'Sort.', ...more } })]);

describe.each(storesFor('the reasoning of a model'))('the reasoning of a model, on %s', (kind) => {
  let server: ModelServer;
  let host: TestHost;
  beforeAll(async () => {
    server = await ModelServer.open();
    host = await startTestHost(kind, inject('postgresUrl'), { models: models(server, ['live', 'long', 'plain']) });
  });
  afterAll(async () => {
    await host?.stop();
    server.close();
  });

  const api = (): Api => host.as('reviewer');
  const start = async (model: string, options: object = {}): Promise<string> =>
    api().run(await register(api(), agent(model)), { inputs: { userPrompt: 'My invoice is wrong' }, ...options });

  it('is advertised as streamed', async () => {
    const { body } = await api().get('/.well-known/openwop');
    expect(body.agents.reasoning).toEqual({ verbosity: 'summary', streaming: true });
  });

  it('is in the log before the model has answered, and a replay takes it from there', async () => {
    const answers: Speech[] = [];
    server.on('live', (_asked, speech) => void answers.push(think(speech, THOUGHTS[0]!)));
    const runId = await start('live');
    const early = await until(
      () => api().events(runId),
      (events) => deltasOf(events).length > 0,
    );
    expect(deltasOf(early)).toEqual([THOUGHTS[0]]);
    expect(payloads(early, 'agent.reasoned')).toEqual([]);
    think(answers[0]!, THOUGHTS[1]!).text(DECISION).end();

    expect((await api().ended(runId)).status).toBe('completed');
    const events = await api().events(runId);
    const deltas = payloads(events, 'agent.reasoning.delta');
    expect(deltas.map(({ sequence }) => sequence)).toEqual([0, 1]);
    expect(payloads(events, 'agent.reasoned')).toEqual([
      { agentId: 'host:agent:agent', reasoning: THOUGHTS.join(''), verbosity: 'summary' },
    ]);
    const told = events.filter(({ type }) => type.startsWith('agent.')).map(({ type }) => type);
    expect(told.slice(-5)).toEqual([
      'agent.reasoning.delta',
      'agent.reasoning.delta',
      'agent.reasoned',
      'agent.decided',
      'agent.invocation.completed',
    ]);

    const { body } = await api().post(`/v1/runs/${runId}:fork`, { mode: 'replay', fromSeq: 0 });
    await api().ended(body.runId);
    const content = (list: readonly Body[]) => list.slice(1).map(({ type, payload }) => [type, payload]);
    expect(content(await api().events(body.runId))).toEqual(content(events));
    expect(server.asked('live')).toHaveLength(1);
  });

  it('is stored as far as the run says', async () => {
    const long = 'thinking '.repeat(400);
    server.on('long', (_asked, speech) => think(speech, long).text(DECISION).end());
    const events = async (reasoningVerbosity: string): Promise<Body[]> => {
      const runId = await start('long', { configurable: { reasoningVerbosity } });
      await api().ended(runId);
      return api().events(runId);
    };
    const full = await events('full');
    expect(deltasOf(full).join('')).toBe(long);
    const short = await events('summary');
    expect(deltasOf(short).join('')).toBe(long.slice(0, 2_000));
    expect(payloads(short, 'agent.reasoned')).toMatchObject([{ reasoning: long.slice(0, 2_000) }]);
    const none = await events('off');
    expect([deltasOf(none), payloads(none, 'agent.reasoned')]).toEqual([[], []]);
  });

  it('is masked where the inputs of the agent are sensitive', async () => {
    server.on('plain', (_asked, speech) => think(speech, 'The card is 4711. ').text(DECISION).end());
    const definition = agent('plain');
    const [first] = definition.nodes;
    const sensitive = {
      ...definition,
      variables: [{ name: 'card', type: 'string', sensitive: true, defaultValue: '4711' }],
      nodes: [{ ...first!, inputs: { card: { type: 'variable', variableName: 'card' } } }],
    };
    const runId = await api().run(await register(api(), sensitive as typeof definition));
    await api().ended(runId);
    const events = await api().events(runId);
    expect(deltasOf(events)).toEqual(['[REDACTED]']);
    expect(JSON.stringify(payloads(events, 'agent.reasoned'))).not.toContain('4711');
  });
});

describe('a host that dies while a model is thinking', () => {
  const { start, follow, kill, newStore } = killableHosts();
  let server: ModelServer;
  beforeAll(async () => {
    server = await ModelServer.open();
  });
  afterAll(() => server.close());
  it('is followed by one where it thinks anew, and no step is told twice', async () => {
    const environment = {
      ...(await newStore('sqlite')),
      CAPSTAN_MODELS: JSON.stringify(models(server, ['crash'])),
    };
    const first = await start(environment);
    const early = first.as('reviewer');
    server.on('crash', (_asked, speech) => void think(speech, 'A thought that is lost. '));
    const runId = await early.run(await register(early, agent('crash')), { inputs: { userPrompt: 'Go' } });
    await until(
      () => early.events(runId),
      (events) => deltasOf(events).length > 0,
    );
    await kill(first);

    server.on('crash', (_asked, speech) => think(speech, 'A better one. ').text(DECISION).end());
    const api = (await follow(environment)).as('reviewer');
    expect((await api.ended(runId)).nodeStates.agent.outputs.result).toBe('billing');
    const events = (await api.events(runId)).filter(({ type }) => type.startsWith('agent.'));
    expect(events.map(({ type, payload }) => [type, payload.sequence ?? payload.reasoning])).toEqual([
      ['agent.invocation.started', undefined],
      ['agent.reasoning.delta', 0],
      ['agent.reasoning.delta', 0],
      ['agent.reasoned', 'A better one. '],
      ['agent.decided', undefined],
      ['agent.invocation.completed', undefined],
    ]);
  });
});
