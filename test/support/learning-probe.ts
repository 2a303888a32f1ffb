import type { JsonObject } from '../../src/protocol/format/json.ts';
import type { Answer, Api } from './api.ts';
import { node, register, workflow } from './definitions.ts';
import { ModelServer } from './model-server.ts';
import { agentPack, chainPack, template } from './proposals.ts';

const MODEL = 'probe';
const SURE = JSON.stringify({ decision: 'billing', confidence: 0.9, reasoning: 'It speaks of an invoice.' });

/** One thing of each kind that can be learnt: what there is before, and what is proposed to take its place. */
export interface Learnable {
  readonly kind: string;
  readonly artifact: JsonObject;
}

/** What a tenant does with its prompts, chains, agents and schedules: the same every time, unless one of them changed. */
export class LearningProbe {
  readonly #api: Api;
  readonly #workflows: { readonly prompt: string; readonly agent: string; readonly timed: string };
  readonly #pack: string;
  readonly proposed: readonly Learnable[];

  private constructor(
    api: Api,
    fields: { workflows: LearningProbe['workflows']; pack: string; proposed: Learnable[] },
  ) {
    this.#api = api;
    this.#workflows = fields.workflows;
    this.#pack = fields.pack;
    this.proposed = fields.proposed;
  }

  get workflows() {
    return this.#workflows;
  }

  /** Sets up what is there before anything is learnt. The key needs to be a reviewer's. */
  static async open(api: Api): Promise<LearningProbe> {
    const prompt = template({ text: 'Be calm.', kind: 'system' });
    const chain = chainPack();
    const agents = agentPack();
    const agentId = (agents.agents as { agentId: string }[])[0]!.agentId;
    await made(api.post('/v1/prompts', prompt));
    await made(api.post('/v1/host/capstan/packs', { manifest: chain }));
    const workflows = {
      prompt: await register(
        api,
        workflow([
          node('speak', 'local.sample.demo.mock-ai', { config: { systemPromptRef: `prompt:${prompt.templateId}` } }),
        ]),
      ),
      agent: await register(
        api,
        workflow([
          node('agent', 'core.agents.run', { agent: { agentId }, config: { provider: 'acme', model: MODEL } }),
        ]),
      ),
      timed: await register(api, workflow([node('only')])),
    };
    const more = {
      chains: [{ ...(chain.chains as JsonObject[])[0], chainId: 'more' }, ...(chain.chains as JsonObject[])],
    };
    const proposed = [
      { kind: 'prompt-template', artifact: { ...prompt, version: '1.1.0', text: 'Be calm, and brief.' } },
      { kind: 'workflow-chain-pack', artifact: { ...chain, version: '1.1.0', ...more } },
      { kind: 'agent-pack', artifact: agents },
      { kind: 'automation', artifact: { workflowId: workflows.timed, cron: '* * * * * *', timezone: 'Europe/Berlin' } },
    ];
    return new LearningProbe(api, { workflows, pack: chain.name as string, proposed });
  }

  /** Everything that could have changed, without what is different each time. */
  async look(): Promise<Record<string, unknown>> {
    return {
      'prompt-template': await this.#eventsOf(this.#workflows.prompt),
      'workflow-chain-pack': await this.#expanded(),
      'agent-pack': await this.#eventsOf(this.#workflows.agent, { userPrompt: 'My invoice is wrong' }),
      automation: await this.#schedules(),
    };
  }

  async #eventsOf(workflowId: string, inputs: JsonObject = {}): Promise<unknown[]> {
    const runId = await this.#api.run(workflowId, { inputs });
    await this.#api.ended(runId);
    const events = await this.#api.events(runId);
    return events.map(({ type, nodeId, payload }) => ({ type, nodeId, payload: this.#steady(payload, runId) }));
  }

  #steady(payload: unknown, runId: string): unknown {
    const text = JSON.stringify(payload, (name, value) => (VOLATILE.includes(name) ? undefined : value));
    return JSON.parse(text.replaceAll(runId, 'the-run').replaceAll(runId.slice(4), 'the-run'));
  }

  async #expanded(): Promise<unknown> {
    const body = { packName: this.#pack, chainId: 'more', expansionId: 'abcd' };
    const { status, body: reply } = await this.#api.post('/v1/host/sample/workflow-chain:expand', body);
    return { status, reply };
  }

  async #schedules(): Promise<unknown> {
    const { items } = (await this.#api.get(`/v1/host/capstan/schedules?workflowId=${this.#workflows.timed}`)).body;
    return items.map(({ cron, timezone }: Answer['body']) => ({ cron, timezone }));
  }
}

/** What a call takes is never the same twice. */
const VOLATILE: readonly string[] = ['durationMs', 'latencyMs'];

/** A model that always says the same, and what a host has to know of it. */
export async function steadyModel() {
  const server = await ModelServer.open();
  server.on(MODEL, (_asked, speech) => speech.text(SURE).end());
  const models = [
    {
      provider: 'acme',
      kind: 'openai-compatible' as const,
      baseUrl: server.url,
      models: [MODEL],
      prices: {},
      timeoutMs: 10_000,
    },
  ];
  return { models, close: () => server.close() };
}

async function made(answering: Promise<Answer>): Promise<void> {
  const { status, text } = await answering;
  if (status !== 201) throw new Error(`not made: ${status} ${text}`);
}
