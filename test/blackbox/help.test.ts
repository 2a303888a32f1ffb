import { generateKeyPairSync } from 'node:crypto';
import { cpSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readModels } from '../../src/capabilities/ai/models/settings.ts';
import { COMMANDS, GROUPS } from '../../src/cli/commands/index.ts';
import { capstan } from '../support/command-line.ts';
import { freshFolder } from '../support/database.ts';
import { fixed, node, register, workflow } from '../support/definitions.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { approval, clarification, waitingRun } from '../support/interrupts.ts';
import { apply, drafted, template } from '../support/proposals.ts';

/**
 * Goal: what `--help` shows as an example works. Method: the example of every command is run as it stands, but for ids:
 * those are of something that was made for it.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const ID = /\b([a-z]+)-0mw4x2c1h000\d\b/g;
const DONE = [0];
/** 1 says that something was turned down, 3 that somebody has to decide: what these commands are for. */
const DECIDED = [0, 1, 3];
const TAKES_AWAY = / (delete|uninstall|forget|revoke)$/;
/** What an example cannot have at hand, and which test does. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'webhooks redeliver': 'a delivery that failed: test/blackbox/cli.test.ts',
  dev: 'a terminal, until Ctrl-C: test/blackbox/projects.test.ts',
  worker: 'a project, until Ctrl-C: test/blackbox/project-workers.test.ts',
  'workflows push': 'a project: test/blackbox/projects.test.ts',
  'workflows diff': 'a project: test/blackbox/projects.test.ts',
  'proposals apply': 'a person who has looked at it: test/blackbox/cli-proposals.test.ts',
  'keys recover': 'a host that is stopped: test/blackbox/cli.test.ts',
};

const examples = [
  ...COMMANDS.map(({ name, example }) => [name, example] as const),
  ...GROUPS.flatMap((group) => group.commands.map(({ name, example }) => [`${group.name} ${name}`, example] as const)),
]
  .filter(([command]) => NOT_RUN[command] === undefined)
  // What takes something away comes last, so that the others find it.
  .sort(([one], [other]) => Number(TAKES_AWAY.test(one)) - Number(TAKES_AWAY.test(other)));

describe('the example of', () => {
  const folder = freshFolder();
  const before = process.cwd();
  let host: TestHost;
  const api = () => host.as('owner');

  beforeAll(async () => {
    const script = join(ROOT, 'examples/triage/model.json');
    const { models } = readModels(
      JSON.stringify([{ provider: 'play', kind: 'scripted', script, models: ['small'] }]),
      {},
    );
    host = await startTestHost('sqlite', undefined, { models, workflowsFolder: join(ROOT, 'examples') });
    symlinkSync(host.config.dataFolder, join(folder.path, 'data'));
    cpSync(join(ROOT, 'examples'), join(folder.path, 'examples'), { recursive: true });
    cpSync(join(ROOT, 'examples/support-triage.json'), join(folder.path, 'triage.json'));
    const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' });
    writeFileSync(join(folder.path, 'signing.pem'), pem);
    process.chdir(folder.path);
    for (const id of ['follow-up', 'triage']) await register(api(), workflow([node('a')], [], { id }));
    const verifier = { id: 'release-ready', kind: 'checklist', items: [{ key: 'a', expression: 'true' }] };
    expect((await api().post('/v1/host/capstan/verifiers', verifier)).status).toBe(201);
    for (const version of ['1.0.0', '1.2.0'])
      expect((await api().post('/v1/prompts', reply(version))).status).toBe(201);
    expect(await api().post('/v1/host/capstan/packs', { manifest: CHAIN })).toMatchObject({ status: 201 });
    expect((await run('packs install examples/triage/pack.json')).code).toBe(0);
  });
  afterAll(async () => {
    process.chdir(before);
    await host?.stop();
    folder.remove();
    process.stdout.write(`--help: ${examples.length} examples run, ${Object.keys(NOT_RUN).length} not\n`);
  });

  const run = (line: string) =>
    capstan(wordsOf(line), {
      environment: {
        CAPSTAN_URL: host.url,
        CAPSTAN_KEY: KEYS.owner.key,
        CAPSTAN_CONFIG: join(folder.path, 'login.json'),
      },
      input: KEYS.owner.key,
      ...(line === 'approvals review' ? { typed: ['q'] } : {}),
    });

  /** Makes what the example of a command is about, and gives its id. */
  async function madeFor(command: string, kind: string): Promise<string> {
    const [group = '', action = ''] = command.split(' ');
    const created = async (path: string, body: object): Promise<string> => {
      const answer = await api().post(`/v1/host/capstan/${path}`, body);
      expect([answer.status, answer.text]).toEqual([201, expect.anything()]);
      if (action === 'resume') await api().post(`/v1/host/capstan/${path}/${answer.body.id}:pause`);
      return answer.body.id;
    };
    const makers: Readonly<Record<string, () => Promise<string>>> = {
      run: () => runFor(group, action),
      goal: () => goalFor(action),
      hb: () =>
        created('heartbeats', {
          intervalSec: 3_600,
          observe: { kv: { namespace: 'a', key: 'b' } },
          workflowId: 'triage',
        }),
      cmt: () =>
        created('commitments', {
          memoryRef: 'mem://a',
          intention: 'Later.',
          workflowId: 'triage',
          at: new Date(Date.now() + 3_600_000).toISOString(),
        }),
      sch: () => created('schedules', { workflowId: 'triage', cron: '0 3 * * *' }),
      trg: async () => {
        const triggers = [{ id: 'hook', type: 'webhook' as const, config: { scheme: 'github' } }];
        const id = await register(api(), workflow([node('a')], [], { triggers }));
        return (await api().get(`/v1/host/capstan/triggers?workflowId=${id}`)).body.items[0].id;
      },
      key: () => created('keys', { name: 'ci', role: 'viewer' }),
      mem: async () => {
        const config = { memoryRef: 'customers/A-1' };
        const remember = node('a', 'vendor.capstan.memory.remember', {
          config,
          inputs: { content: fixed('Likes tea.') },
        });
        const ended = await api().ended(await api().run(await register(api(), workflow([remember]))));
        return ended.nodeStates.a.outputs.memoryId;
      },
      prop: async () => (await drafted(api(), 'prompt-template', template())).id,
      art: async () => {
        const { id } = await drafted(api(), 'prompt-template', template());
        return (await apply(host.as('reviewer'), id)).body.installedArtifactRef;
      },
      wh: async () => {
        const hook = { url: 'https://example.com/hooks', events: ['run.completed'] };
        return (await api().post('/v1/webhooks', hook)).body.webhookId;
      },
    };
    return makers[kind]!();
  }

  async function runFor(group: string, action: string): Promise<string> {
    if (group === 'approvals' && action === 'answer') {
      const asking = clarification('ask', [{ id: 'colour', question: 'Which colour?' }]);
      return (await waitingRun(api(), await register(api(), workflow([asking])))).runId;
    }
    if (group === 'approvals')
      return (await waitingRun(api(), await register(api(), workflow([approval('gate')])))).runId;
    if (['cancel', 'pause', 'resume'].includes(action)) {
      const slow = node('slow', 'core.delay', { config: { delayMs: 60_000 } });
      const runId = await api().run(await register(api(), workflow([slow])));
      if (action === 'resume') expect((await api().post(`/v1/runs/${runId}:pause`, {})).status).toBe(202);
      return runId;
    }
    if (action === 'retry') {
      const fails = node('fails', 'core.fail', { config: { code: 'broken', message: 'It broke.' } });
      return (await api().ended(await api().run(await register(api(), workflow([fails]))))).runId;
    }
    const isReport = action === 'artifacts';
    const inputs = isReport ? {} : { subject: 'I cannot log in', plan: 'pro' };
    return (await api().ended(await api().run(isReport ? 'nightly-report' : 'support-triage', { inputs }))).runId;
  }

  async function goalFor(action: string): Promise<string> {
    const goal = {
      objective: 'No ticket is overdue',
      completion: { check: 'host' },
      continuation: { mode: 'manual' },
      bounds: { maxLoopIterations: 7 },
    };
    const { id } = (await api().post('/v1/goals', goal)).body;
    const plan = { workflowId: 'nightly-report', criteria: [{ key: 'none', expression: 'false' }] };
    await api().request('PUT', `/v1/host/capstan/goals/${id}/plan`, plan);
    if (action === 'resume') await api().post(`/v1/goals/${id}/pause`);
    return id;
  }

  it.each(examples)('capstan %s works: %s', async (command, example) => {
    if (command === 'prompts create')
      writeFileSync('reply.json', JSON.stringify({ ...reply('1.0.0'), templateId: 'a.new' }));
    if (command === 'prompts update') writeFileSync('reply.json', JSON.stringify(reply('1.3.0')));
    if (command === 'audit verify') expect((await run('audit export --output audit.json')).code).toBe(0);
    if (command === 'workflows delete') expect((await run('workflows register triage.json')).code).toBe(0);
    let line = example.replace('http://127.0.0.1:3210', host.url);
    for (const [placeholder, kind] of [...example.matchAll(ID)])
      line = line.replace(placeholder, await madeFor(command, kind!));
    const { code, err } = await run(line);
    const isDecision = /^(approvals|goals|proposals|inbox)/.test(command);
    expect(isDecision ? DECIDED : DONE, err).toContain(code);
    if (code !== 0) expect(err).not.toMatch(/^(error|Capstan)/m);
  });
});

const reply = (version: string) => ({
  ...{ templateId: 'support.reply', version, kind: 'user', text: 'Dear {{name}}' },
  variables: [{ name: 'name', type: 'string', required: true }],
});

const CHAIN = {
  name: 'vendor.acme.waiting',
  version: '1.0.0',
  kind: 'workflow-chain',
  engines: { openwop: '>=1.0.0 <2.0.0' },
  chains: [
    {
      chainId: 'vendor.acme.pause',
      version: '1.0.0',
      label: 'Pause',
      description: 'Waits',
      parameters: { type: 'object', properties: { ms: { type: 'integer' } } },
      dag: { nodes: [{ id: 'wait', typeId: 'core.delay', config: { delayMs: '{{params.ms}}' } }], edges: [] },
    },
  ],
};

/** The words of a line as a shell takes them; what it writes elsewhere is of no interest here. */
function wordsOf(line: string): string[] {
  const [command = ''] = line.split(' > ');
  return [...command.matchAll(/(?:[^\s"']|"[^"]*"|'[^']*')+/g)].map(([word]) => word.replaceAll(/["']/g, ''));
}

describe('the help of', () => {
  it.each(['dev', 'test', 'worker', 'completion'])('%s has no --json, which would print nothing', async (command) => {
    expect((await capstan([command, '--help'])).out).not.toContain('--json');
  });

  it.each(['init', 'login', 'keys recover', 'audit verify'])('%s promises no reply of a host', async (command) => {
    expect((await capstan([...command.split(' '), '--help'])).out).toMatch(/--json +print the result as JSON/);
  });

  it('runs get does', async () => {
    expect((await capstan(['runs', 'get', '--help'])).out).toMatch(/--json +print the reply of the host as JSON/);
  });
});
