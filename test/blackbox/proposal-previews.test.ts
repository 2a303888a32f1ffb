import { afterAll, describe, expect, it } from 'vitest';
import type { WorkflowNode } from '../../src/protocol/running/workflows.ts';
import type { Answer, Api } from '../support/api.ts';
import { capstan } from '../support/command-line.ts';
import { freshFolder } from '../support/database.ts';
import { connection, edge, fixed, line, node, register, unique, variable, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { KEYS } from '../support/host.ts';
import { resolve, waits } from '../support/interrupts.ts';
import { killableHosts } from '../support/killed.ts';
import { ModelServer, type Speech } from '../support/model-server.ts';
import { agentPack, chainPack, drafted, revise, stateOf, template } from '../support/proposals.ts';
import { Receiver } from '../support/receiver.ts';
import { scriptedModel } from '../support/scripted-model.ts';
import { onEachStore } from '../support/stores.ts';
import { until } from '../support/until.ts';

/**
 * Goal: before anybody decides on a draft, they see what it would have done. Method: runs of a model that really does
 * better or worse with the words of the draft, and a receiver that notices everything that a preview touches.
 */

type Body = Answer['body'];

const folder = freshFolder();
const receiver = await Receiver.open();
afterAll(async () => {
  await receiver.close();
  folder.remove();
});

const FETCH = 'core.openwop.http.fetch';
const SECRET = 'sk-abcdefghijklmnopqrstuvwxyz0123456789';
const model = scriptedModel(
  folder.path,
  {
    answers: [
      { when: { contains: 'It is 10 km.' }, data: { satisfied: true, confidence: 1, evidence: [] } },
      { when: { contains: 'The rubric' }, data: { satisfied: false, confidence: 1, evidence: [] } },
      { when: { contains: 'fetched' }, content: 'I fetched it.' },
      {
        when: { contains: 'Fetch it' },
        toolCalls: [
          {
            id: 'c1',
            name: 'openwop_core_openwop_http_fetch',
            arguments: { config: { url: receiver.url, method: 'POST' }, inputs: { body: { by: 'agent' } } },
          },
        ],
      },
      { when: { contains: 'metric units' }, content: 'It is 10 km.' },
      { when: { contains: 'leave out the unit' }, content: 'It is far.' },
      { content: 'It is 6 miles.' },
    ],
  },
  { prices: { small: { input: 100, output: 100 } } },
);

const speak = (ref: string): WorkflowNode =>
  node('speak', 'core.ai.chatCompletion', {
    config: { provider: 'play', model: 'small', userPromptRef: ref },
    inputs: { place: variable('place') },
  });
const PLACE = { variables: [{ name: 'place', type: 'string', required: false }] as never };

onEachStore(
  'the preview of a proposal',
  (host) => {
    const api = (): Api => host().as('reviewer');
    const ask = (id: string, body: object): Promise<Answer> =>
      api().post(`/v1/host/capstan/proposals/${id}:preview`, body);
    const ended = async (id: string, request: object = {}): Promise<Body> => {
      const asked = await ask(id, { budgetUsd: 1, ...request });
      expect(asked.status, asked.text).toBe(202);
      const path = `/v1/host/capstan/previews/${asked.body.id}`;
      return until(
        async () => (await api().get(path)).body,
        ({ state }) => state === 'done',
      );
    };
    const inKilometres = [{ key: 'kilometres', expression: 'outputs.speak.content.contains("km")' }];
    const inAnyUnit = [
      { key: 'a unit', expression: 'outputs.speak.content.contains("km") || outputs.speak.content.contains("miles")' },
    ];

    /** A prompt, and runs whose answers people corrected. */
    async function corrected(count: number, definition: (ref: string) => ReturnType<typeof workflow>) {
      const prompt = template({
        text: 'How far is {{place}}?',
        variables: [{ name: 'place', type: 'string', required: false }],
      });
      expect((await api().post('/v1/prompts', prompt)).status).toBe(201);
      const workflowId = await register(api(), definition(`prompt:${prompt.templateId}`));
      const runIds: string[] = [];
      for (let at = 0; at < count; at++) runIds.push(await api().run(workflowId, { inputs: { place: `place ${at}` } }));
      return { prompt, workflowId, runIds };
    }
    const correct = async (runId: string, correction: string): Promise<void> => {
      const answer = await api().post(`/v1/runs/${runId}/annotations`, {
        target: { nodeId: 'speak' },
        signal: { kind: 'correction', correction },
      });
      expect(answer.status, answer.text).toBe(201);
    };

    it('shows what a better prompt would have done, and touches nothing', async () => {
      const gate = node('gate', 'core.approvalGate', { config: { title: 'Send it?' } });
      const wait = node('wait', 'core.delay', { config: { ms: 20 } });
      const send = node('send', FETCH, {
        config: { url: receiver.url, method: 'POST' },
        inputs: { body: fixed({ sent: true }) },
      });
      const { prompt, workflowId, runIds } = await corrected(3, (ref) =>
        workflow([speak(ref), gate, wait, send], line('speak', 'gate', 'wait', 'send'), PLACE),
      );
      for (const runId of runIds) {
        await waits(api(), runId);
        await resolve(api(), runId, 'gate', { action: 'accept' });
        expect((await api().ended(runId)).status).toBe('completed');
        await correct(runId, 'Use metric units.');
      }
      const hook = await api().post('/v1/webhooks', { url: receiver.url, events: ['run.started', 'run.completed'] });
      expect(hook.status).toBe(201);
      const touched = receiver.arrivals.length;

      const text = `${prompt.text} Use metric units.`;
      const { id } = await drafted(
        api(),
        'prompt-template',
        { ...prompt, version: '1.1.0', text },
        { sourceRunIds: runIds },
      );
      const costs = async (): Promise<number> =>
        (await host().as('owner').get(`/v1/host/capstan/costs?workflowId=${workflowId}`)).body.usd;
      const costsBefore = await costs();
      const preview = await ended(id, { criteria: inKilometres });
      expect((await costs()) - costsBefore).toBeCloseTo(preview.summary.spentUsd, 9);
      expect(preview.summary.spentUsd).toBeGreaterThan(0);
      expect(preview).toMatchObject({ proposalId: id, kind: 'prompt-template', budgetUsd: 1 });
      expect(preview.summary).toMatchObject({ runs: 3, nowPass: 3, worse: 0, same: 0, undecided: 0, notRun: 0 });
      expect(preview.summary.sentence).toMatch(/^3 corrected runs: 3 now pass, 0 worse, 0 same, \+\$0\.\d+ per run$/);

      for (const { sourceRunId, runId, change, before, after, diff } of preview.pairs) {
        expect(runIds).toContain(sourceRunId);
        expect([change, before.verdict, after.verdict]).toEqual(['now-passes', 'fail', 'pass']);
        const compared = await api().get(diff);
        expect([compared.status, compared.body.a, compared.body.b]).toEqual([200, sourceRunId, runId]);
        const run = (await api().get(`/v1/runs/${runId}`)).body;
        expect(run).toMatchObject({
          status: 'completed',
          tags: ['capstan:preview'],
          forkedFrom: { runId: sourceRunId },
        });
        expect(run.nodeStates.speak.outputs.content).toBe('It is 10 km.');
      }
      const listed = async (isPreview: boolean) =>
        (await api().get(`/v1/host/capstan/runs?workflowId=${workflowId}&preview=${isPreview}`)).body.items;
      expect(await listed(true)).toMatchObject(preview.pairs.map(() => ({ preview: true })));
      expect((await listed(false)).map(({ runId }: { runId: string }) => runId).sort()).toEqual([...runIds].sort());
      // Deliveries of the preview would have been due before those of a later run.
      const later = await api().run(await register(api(), workflow([node('only')])));
      const arrived = () => receiver.arrivals.slice(touched).map(({ body }) => [body.runId, body.type]);
      await receiver.until(() => arrived().filter(([runId]) => runId === later).length === 2);
      expect(arrived().filter(([runId]) => runId !== later)).toEqual([]);
      const waiting = (await api().get('/v1/host/capstan/inbox')).text;
      for (const { runId } of preview.pairs) expect(waiting).not.toContain(runId);

      const figures = (await api().get(`/v1/host/capstan/feedback/summary?workflowId=${workflowId}`)).body;
      expect(figures.runs).toBe(3);
      const rated = { signal: { kind: 'rating', rating: 5 } };
      expectRefusal(await api().post(`/v1/runs/${preview.pairs[0].runId}/annotations`, rated), 409, 'conflict');

      expect(await stateOf(api(), id)).toBe('draft');
      expect((await api().get(`/v1/prompts/${prompt.templateId}`)).body.version).toBe('1.0.0');
      await api().request('DELETE', `/v1/webhooks/${hook.body.webhookId}`);
    });

    it('shows the harm that a worse prompt would have done', async () => {
      const { prompt, runIds } = await corrected(2, (ref) => workflow([speak(ref)], [], PLACE));
      for (const runId of runIds) await api().ended(runId);
      const text = `${prompt.text} Please leave out the unit.`;
      const { id } = await drafted(
        api(),
        'prompt-template',
        { ...prompt, version: '1.1.0', text },
        { sourceRunIds: runIds },
      );
      const { summary, pairs } = await ended(id, { criteria: inAnyUnit });
      expect(summary).toMatchObject({ runs: 2, nowPass: 0, worse: 2, same: 0 });
      expect(pairs[0].after.evidence).toEqual([{ key: 'a unit', met: false }]);
    });

    it('does not blame the draft where a run takes a step that its source did not take', async () => {
      const send = node('send', FETCH, { config: { url: receiver.url, method: 'POST' }, inputs: { body: fixed({}) } });
      const condition = { type: 'equals', left: 'content', right: 'It is 10 km.' } as const;
      const { prompt, runIds } = await corrected(1, (ref) =>
        workflow([speak(ref), send], [edge('speak', 'send', { condition })], PLACE),
      );
      await api().ended(runIds[0]!);
      const touched = receiver.arrivals.length;
      const text = `${prompt.text} Use metric units.`;
      const draft = { ...prompt, version: '1.1.0', text };
      const { id } = await drafted(api(), 'prompt-template', draft, { sourceRunIds: runIds });
      const { summary, pairs } = await ended(id, { criteria: inKilometres });
      expect(summary).toMatchObject({ worse: 0, notRun: 1 });
      expect(pairs[0].reason).toBe('the run came to a step of which its source has no record');
      expect(receiver.arrivals).toHaveLength(touched);
    });

    it('without a judge goes by what people said', async () => {
      const { prompt, runIds } = await corrected(2, (ref) => workflow([speak(ref)], [], PLACE));
      for (const runId of runIds) await api().ended(runId);
      await correct(runIds[0]!, 'It is 10 km.');
      const text = `${prompt.text} Use metric units.`;
      const { id } = await drafted(
        api(),
        'prompt-template',
        { ...prompt, version: '1.1.0', text },
        { sourceRunIds: runIds },
      );
      const { pairs } = await ended(id);
      const changes = Object.fromEntries(pairs.map(({ sourceRunId, change }: Body) => [sourceRunId, change]));
      expect(changes).toEqual({ [runIds[0]!]: 'now-passes', [runIds[1]!]: 'undecided' });
    });

    it('is rated by a verifier of the tenant', async () => {
      const { prompt, runIds } = await corrected(1, (ref) => workflow([speak(ref)], [], PLACE));
      await api().ended(runIds[0]!);
      const verifier = { id: unique('ver'), kind: 'model', rubric: 'The unit is right.', model: 'play/small' };
      expect((await api().post('/v1/host/capstan/verifiers', verifier)).status).toBe(201);
      const text = `${prompt.text} Use metric units.`;
      const { id } = await drafted(
        api(),
        'prompt-template',
        { ...prompt, version: '1.1.0', text },
        { sourceRunIds: runIds },
      );
      const { summary, pairs } = await ended(id, { verifierRef: verifier.id });
      expect(pairs[0]).toMatchObject({
        before: { verdict: 'fail', judge: `${verifier.id}@1` },
        after: { verdict: 'pass' },
      });
      expect(summary.spentUsd).toBeGreaterThan(pairs[0].after.costUsd);
    });

    it('leaves runs alone that name a version of the prompt', async () => {
      const { prompt, runIds } = await corrected(1, (ref) => workflow([speak(`${ref}@1.0.0`)], [], PLACE));
      await api().ended(runIds[0]!);
      const text = `${prompt.text} Use metric units.`;
      const { id } = await drafted(
        api(),
        'prompt-template',
        { ...prompt, version: '1.1.0', text },
        { sourceRunIds: runIds },
      );
      expect((await ended(id, { criteria: inKilometres })).summary).toMatchObject({ same: 1, nowPass: 0 });
    });

    it('spends no more than its budget', async () => {
      const { prompt, runIds } = await corrected(3, (ref) => workflow([speak(ref)], [], PLACE));
      for (const runId of runIds) await api().ended(runId);
      const text = `${prompt.text} Use metric units.`;
      const { id } = await drafted(
        api(),
        'prompt-template',
        { ...prompt, version: '1.1.0', text },
        { sourceRunIds: runIds },
      );
      const first = await ended(id, { criteria: inKilometres, maxRuns: 1 });
      const budgetUsd = first.summary.spentUsd * 1.5;
      const { summary, pairs } = await ended(id, { criteria: inKilometres, budgetUsd });
      expect(summary.spentUsd).toBeLessThanOrEqual(budgetUsd);
      expect(summary).toMatchObject({ nowPass: 1, notRun: 2, worse: 0, same: 0 });
      expect(pairs[1].reason).toBe('the budget is used up');
      const none = await ended(id, { criteria: inKilometres, budgetUsd: 0 });
      expect(none.summary).toMatchObject({ spentUsd: 0, notRun: 3 });
    });

    it('of a chain puts it where the run had its steps', async () => {
      const steps = (level: string) => [
        node('start', 'core.noop'),
        node('first', 'core.identity', { inputs: { value: fixed(level) } }),
        node('second', 'core.identity', { inputs: { value: connection('first', 'value') } }),
      ];
      const nodes = steps('high');
      const runId = await api().run(await register(api(), workflow(nodes, line('start', 'first', 'second'))));
      await api().ended(runId);
      const chain = (value: unknown) => ({
        chainId: 'learned',
        version: '1.0.0',
        label: 'Learned',
        description: '',
        parameters: { type: 'object', properties: { level: {} } },
        dag: {
          nodes: [
            { id: 'step1', typeId: 'core.identity', inputs: { value: { type: 'static', value } } },
            {
              id: 'step2',
              typeId: 'core.identity',
              inputs: { value: { type: 'connection', nodeId: 'step1', outputKey: 'value' } },
            },
          ],
          edges: [{ from: 'step1', to: 'step2' }],
        },
      });
      const pack = chainPack({ chains: [chain('{{params.level}}')] });
      const { id } = await drafted(api(), 'workflow-chain-pack', pack, { sourceRunIds: [runId] });
      const criteria = [{ key: 'high', expression: 'outputs.second.value == "high"' }];
      expect((await ended(id, { criteria })).summary.sentence).toBe('1 run: 0 now pass, 0 worse, 1 same, +$0 per run');
      expect((await revise(api(), id, { artifact: { ...pack, chains: [chain('low')] } })).status).toBe(200);
      const worse = await ended(id, { criteria });
      expect(worse.summary).toMatchObject({ worse: 1 });
      const kept = (await api().get(`/v1/host/capstan/proposals/${id}/previews`)).body.previews;
      expect(kept.map((each: Body) => each.summary.worse)).toEqual([1, 0]);
      expect(kept[0].artifactHash).not.toBe(kept[1].artifactHash);
    });

    it('of an agent lets it take over, with the results that tools gave', async () => {
      const tool = `openwop:${FETCH}`;
      const config = { provider: 'play', model: 'small', systemPrompt: 'You fetch.', tools: [tool, 'capstan.kv:get'] };
      const asking = node('agent', 'core.agents.run', { config, inputs: { task: fixed('Fetch it') } });
      const runId = await api().run(await register(api(), workflow([asking])));
      expect((await api().ended(runId)).status).toBe('completed');
      const touched = receiver.arrivals.length;
      const pack = agentPack();
      const [agent] = pack.agents as object[];
      const agents = [{ ...agent, systemPrompt: 'You fetch.', toolAllowlist: [tool] }];
      const { id } = await drafted(api(), 'agent-pack', { ...pack, agents }, { sourceRunIds: [runId] });
      const criteria = [{ key: 'fetched', expression: 'outputs.agent.finalMessage == "I fetched it."' }];
      const { summary, pairs } = await ended(id, { criteria });
      expect(summary).toMatchObject({ runs: 1, same: 1 });
      const events = await api().events(pairs[0].runId);
      const started = events.find(({ type }) => type === 'agent.invocation.started');
      expect(started.payload).toMatchObject({ resolvedAgentVersion: '1.0.0', toolSurfaceCount: 1 });
      expect(receiver.arrivals).toHaveLength(touched);
    });

    it('of an automation is a calendar of firings beside what people started', async () => {
      const workflowId = await register(api(), workflow([node('only')]));
      const runId = await api().run(workflowId);
      await api().ended(runId);
      const spec = { workflowId, cron: '*/10 * * * *', timezone: 'Europe/Berlin' };
      const { id } = await drafted(api(), 'automation', spec, { sourceRunIds: [runId] });
      const { calendar, summary } = await ended(id, { budgetUsd: 0 });
      expect(calendar.next).toHaveLength(10);
      expect(calendar.starts).toMatchObject([{ runId, firing: expect.any(String) }]);
      expect(Math.abs(calendar.starts[0].minutesLater)).toBeLessThanOrEqual(5);
      expect(summary.sentence).toMatch(/^1 past start: 1 next to a firing, 0 firings/);
    });

    it('is for those who may see the proposal and spend something', async () => {
      const { id } = await drafted(api(), 'prompt-template', template());
      const path = `/v1/host/capstan/proposals/${id}`;
      const request = { budgetUsd: 1 };
      expectRefusal(await host().as('other').post(`${path}:preview`, request), 404, 'not_found');
      expectRefusal(await host().as('other').get(`${path}/previews`), 404, 'not_found');
      expectRefusal(await host().as('viewer').post(`${path}:preview`, request), 403, 'forbidden');
      const { body } = await ask(id, request);
      expectRefusal(await host().as('other').get(`/v1/host/capstan/previews/${body.id}`), 404, 'not_found');
      const both = { ...request, verifierRef: 'x', criteria: inKilometres };
      expectRefusal(await ask(id, both), 400, 'validation_error');
      expectRefusal(await ask(id, { ...request, verifierRef: unique('none') }), 400, 'validation_error');
      expectRefusal(
        await ask(id, { ...request, criteria: [{ key: 'a', expression: '1 +' }] }),
        400,
        'validation_error',
      );
      expectRefusal(await ask(id, {}), 400, 'validation_error');
      await api().post(`/v1/proposals/${id}/reject`, {});
      expectRefusal(await ask(id, request), 409, 'conflict');
    });

    it('has no secrets and nobody by name, and can be asked for at the command line', async () => {
      const { prompt, runIds } = await corrected(2, (ref) => workflow([speak(ref)], [], PLACE));
      for (const runId of runIds) await api().ended(runId);
      const text = `${prompt.text} Use metric units.`;
      const { id } = await drafted(
        api(),
        'prompt-template',
        { ...prompt, version: '1.1.0', text },
        { sourceRunIds: runIds },
      );
      const expression = `outputs.speak.content == "ada.lovelace@corp.example ${SECRET}"`;
      const asked = await ended(id, { criteria: [{ key: 'ada.lovelace@corp.example', expression }], maxRuns: 1 });
      expect(asked.pairs).toHaveLength(1);
      expect(JSON.stringify(asked)).not.toMatch(/lovelace|sk-abc/);

      const environment = { CAPSTAN_URL: host().url, CAPSTAN_KEY: KEYS.reviewer.key };
      const rule = 'kilometres=outputs.speak.content.contains("km")';
      const { code, out } = await capstan(
        ['proposals', 'preview', id, '--budget', '0.05', '--criterion', rule, '--wait'],
        { environment },
      );
      expect(out).toContain('2 corrected runs: 2 now pass, 0 worse, 0 same');
      expect(out).toMatch(new RegExp(`capstan runs diff ${runIds[0]} run-`));
      expect(code).toBe(0);
      const json = await capstan(['proposals', 'previews', id, '--json'], { environment });
      expect(JSON.parse(json.out).previews).toHaveLength(2);
    });
  },
  { models: [model], judgeModel: undefined },
);

describe('a host that dies during a preview', () => {
  const { start, follow, kill, newStore } = killableHosts();

  it('is followed by one that goes on with the next pair, and asks no model again that has answered', async () => {
    const server = await ModelServer.open();
    try {
      const answers = (speech: Speech): void => speech.text('Ten.').end();
      server.on('m', (_asked, speech) => answers(speech));
      const models = [
        {
          provider: 'acme',
          kind: 'openai-compatible',
          baseUrl: server.url,
          models: ['m'],
          prices: { m: { input: 1, output: 1 } },
        },
      ];
      const environment = { ...(await newStore('sqlite')), CAPSTAN_MODELS: JSON.stringify(models) };
      const first = await start(environment);
      const prompt = template({ text: 'How far?' });
      expect((await first.as('reviewer').post('/v1/prompts', prompt)).status).toBe(201);
      const config = { provider: 'acme', model: 'm', userPromptRef: `prompt:${prompt.templateId}` };
      const workflowId = await register(
        first.as('reviewer'),
        workflow([node('speak', 'core.ai.chatCompletion', { config })]),
      );
      const sourceRunIds: string[] = [];
      for (let count = 0; count < 3; count++) sourceRunIds.push(await first.as('reviewer').run(workflowId));
      for (const runId of sourceRunIds) await first.as('reviewer').ended(runId);
      const artifact = { ...prompt, version: '1.1.0', text: 'How far, please?' };
      const { id } = await drafted(first.as('reviewer'), 'prompt-template', artifact, { sourceRunIds });
      // The model answers once more, and is thinking about the second pair when the host dies.
      server.on('m', (_asked, speech) => {
        if (server.asked('m').length === 1) answers(speech);
      });
      const criteria = [{ key: 'ten', expression: 'outputs.speak.content == "Ten."' }];
      const begun = await first
        .as('reviewer')
        .post(`/v1/host/capstan/proposals/${id}:preview`, { budgetUsd: 1, criteria });
      const path = `/v1/host/capstan/previews/${begun.body.id}`;
      const pairsOf = async (api: Api): Promise<Body[]> => (await api.get(path)).body.pairs;
      await until(
        () => pairsOf(first.as('reviewer')),
        () => server.asked('m').length === 2,
      );
      const before = await pairsOf(first.as('reviewer'));
      await kill(first);

      server.on('m', (_asked, speech) => answers(speech));
      const second = (await follow(environment)).as('reviewer');
      const ended = await until(
        async () => (await second.get(path)).body,
        ({ state }) => state === 'done',
      );
      expect(ended.summary).toMatchObject({ runs: 3, same: 3 });
      expect(server.asked('m')).toHaveLength(2);
      expect(ended.pairs.slice(0, 2).map(({ runId }: Body) => runId)).toEqual(
        before.slice(0, 2).map(({ runId }) => runId),
      );
      expect(new Set(ended.pairs.map(({ runId }: Body) => runId)).size).toBe(3);
    } finally {
      server.close();
    }
  });
});
