import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readModels } from '../../src/capabilities/ai/models/settings.ts';
import { capstan, type Ran } from '../support/command-line.ts';
import { fixed, node, register, unique, WORKFLOWS, workflow } from '../support/definitions.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';

/** Goal: whoever looks at the run of an agent reads what it answered, did, decided and cost, and not the wire. */

const EXAMPLE = fileURLToPath(new URL('../../examples/triage/', import.meta.url));

describe('the command line', () => {
  let host: TestHost;
  const api = () => host.as('owner');
  const run = (...args: string[]): Promise<Ran> =>
    capstan(args, { environment: { CAPSTAN_URL: host.url, CAPSTAN_KEY: KEYS.owner.key } });

  beforeAll(async () => {
    const prices = { small: { input: 1_000, output: 2_000 } };
    const provider = {
      provider: 'play',
      kind: 'scripted',
      script: join(EXAMPLE, 'model.json'),
      models: ['small'],
      prices,
    };
    const { models } = readModels(JSON.stringify([provider]), {});
    host = await startTestHost('sqlite', undefined, { models });
    expect((await run('packs', 'install', join(EXAMPLE, 'pack.json'))).code).toBe(0);
    for (const name of ['customer', 'triage']) {
      expect((await run('workflows', 'register', join(EXAMPLE, `${name}.json`))).code).toBe(0);
    }
  });
  afterAll(() => host?.stop());

  it('shows the tools, decisions and cost of an agent, after what came out', async () => {
    const args = ['--set', 'customer=acme', '--set', 'text=Nothing loads since nine'];
    const { code, out } = await run('runs', 'start', 'triage', ...args, '--wait');
    expect(code).toBe(0);
    expect(out).toMatch(/^tools\s+capstan\.workflow:triage-customer/m);
    expect(out).toMatch(/^decisions\s+vendor\.example\.triage\.sorter: /m);
    expect(out).toMatch(/^cost\s+.*\d/m);
    expect(out.indexOf('queue')).toBeGreaterThan(-1);
    const { items } = (await api().get('/v1/host/capstan/runs?workflowId=triage')).body;
    const got = await run('runs', 'get', items[0].runId);
    for (const line of ['tools', 'decisions', 'cost']) expect(got.out).toMatch(new RegExp(`^${line}\\s+\\S`, 'm'));
  });

  it('shows what a model says as text that grows, not as events', async () => {
    const config = { provider: 'play', model: 'small' };
    const asks = node('ask', 'core.ai.chatCompletion', { config, inputs: { prompt: fixed('Hello?') } });
    const { code, out } = await run('runs', 'start', await register(api(), workflow([asks])), '--follow');
    expect(code).toBe(0);
    const { items } = (await api().get('/v1/host/capstan/runs?limit=1')).body;
    const { content } = (await api().ended(items[0].runId)).nodeStates.ask.outputs;
    expect(out).toContain(content);
    expect(out).not.toContain('output.chunk');
  });

  it('is warned of a misspelt model, provider, agent and tool with the nearest name', async () => {
    const config = {
      agentId: 'vendor.example.triage.sortr',
      tools: ['capstan.kv:gett'],
      provider: 'play',
      model: 'smal',
    };
    const nodes = [
      node('a', 'core.agents.run', { config }),
      node('b', 'core.ai.chatCompletion', { config: { provider: 'plya', model: 'small' } }),
    ];
    const { status, body } = await api().post(WORKFLOWS, { ...workflow(nodes), id: unique('misspelt') });
    expect([status, body.details]).toEqual([201, undefined]);
    const said = body.warnings.map(({ message }: { message: string }) => message).join('\n');
    for (const name of ['vendor.example.triage.sorter', 'capstan.kv:get', 'small', 'play']) {
      expect(said).toMatch(new RegExp(`(Did you mean "|It has )${name.replaceAll('.', '\\.')}["?.]`));
    }
  });
});
