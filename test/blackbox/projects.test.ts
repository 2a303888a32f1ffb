import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, inject, it } from 'vitest';
import { ProjectProblem } from '../../src/build/projects.ts';
import { Api } from '../support/api.ts';
import { capstan } from '../support/command-line.ts';
import { KEYS } from '../support/host.ts';
import { eventsOf } from '../support/interrupts.ts';
import { expectSoundLog, killableHosts } from '../support/killed.ts';
import { localHosts } from '../support/local-hosts.ts';
import { runProgram } from '../support/process.ts';
import { fromGitHub, ISSUE_OPENED, send } from '../support/senders.ts';
import { until } from '../support/until.ts';

/** Goal: a folder of code is a host. Method: projects are written to the disk, and the program is started on them. */

/** Written apart: here it is text, and nothing that this file imports. */
const BUILD = "'capstan/build'";
const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const EXAMPLE = join(ROOT, 'examples', 'project');
const { start, kill, stop, newFolder } = killableHosts();
const { start: startHere } = localHosts();

/** Writes a project and gives its folder. */
function projectOf(files: Readonly<Record<string, string>>): string {
  const folder = join(newFolder(), 'project');
  mkdirSync(folder);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

const environmentOf = (folder: string) => ({
  CAPSTAN_PROJECT: folder,
  CAPSTAN_DATA: join(folder, '.capstan', 'data'),
});

const pushedLine = (id: string): string => `${id}: version 1. Run it with: capstan runs start ${id}`;

describe('capstan init', () => {
  it('makes a project whose test passes and whose workflow runs, for every tenant', { timeout: 120_000 }, async () => {
    const folder = join(newFolder(), 'my-agent');
    const made = await capstan(['init', folder]);
    expect(made, made.err).toMatchObject({ code: 0 });
    const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const source = resolve(folder, dependencies.capstan.replace(/^file:/, ''));
    expect(source, 'from a checkout, the command is that of the checkout').toBe(ROOT);
    const tested = await runProgram(['test', folder], {});
    expect(tested, tested.output).toMatchObject({ code: 0 });
    expect(tested.output).toContain('pass 3');
    const host = await startHere(environmentOf(folder));
    for (const who of ['owner', 'other'] as const) {
      const api = host.as(who);
      const { body } = await api.get('/v1/host/capstan/workflows?limit=200');
      expect(body.items.map(({ id }: { id: string }) => id)).toContain('remind-of-invoice');
      const runId = await api.run('remind-of-invoice', { inputs: { number: '2026-2' } });
      const waiting = await api.until(runId, ({ nodeStates }) => nodeStates.invoice?.status === 'completed');
      expect(waiting.nodeStates.invoice.outputs).toEqual({ customer: 'Bo', total: 12_000 });
    }
    await host.stop();
  });

  it('makes a project whose workflows a tenant of any host can have', async () => {
    const folder = join(newFolder(), 'my-agent');
    await capstan(['init', folder]);
    const host = await startHere(environmentOf(folder));
    const environment = { CAPSTAN_URL: host.url, CAPSTAN_KEY: KEYS.owner.key };
    const [same, pushed] = [
      await capstan(['workflows', 'diff', folder], { environment }),
      await capstan(['workflows', 'push', folder], { environment }),
    ];
    expect(same).toMatchObject({ code: 0, out: 'remind-of-invoice: same\n' });
    expect(pushed).toMatchObject({
      code: 0,
      out: 'remind-of-invoice: not pushed, the host shares the same workflow\n',
    });
    const { body: shared } = await host.as('owner').get('/v1/host/capstan/workflows/remind-of-invoice');
    const alike = ['a-b', 'a_b'].map((id) => ({ id, version: '1', nodes: [{ id: 'a', typeId: 'core.noop' }] }));
    for (const definition of [shared, ...alike]) {
      expect((await host.as('owner').post('/v1/host/capstan/workflows', definition)).status).toBe(201);
    }
    const pulled = join(newFolder(), 'pulled');
    const asCode = await capstan(['workflows', 'pull', pulled, '--code'], { environment });
    expect(asCode, asCode.err).toMatchObject({ code: 0 });
    expect(readFileSync(join(pulled, 'remind-of-invoice.ts'), 'utf8')).toContain("node('invoice', 'acme.fetchInvoice'");
    const again = await capstan(['workflows', 'push', pulled], { environment });
    expect(again.code, again.err).toBe(0);
    const lines = ['a-b', 'a_b', 'remind-of-invoice'].map(pushedLine);
    expect(again.out.trim().split('\n').toSorted()).toEqual(lines);
    await host.stop();
  });

  it('leaves a folder alone that has something in it', async () => {
    const folder = projectOf({ 'notes.txt': 'mine' });
    const { code, err } = await capstan(['init', folder]);
    expect(code).toBe(2);
    expect(err).toContain(folder);
    expect(existsSync(join(folder, 'capstan.config.ts'))).toBe(false);
  });
});

const WRONG_WORKFLOW = `import { defineProject, defineWorkflow } from ${BUILD};
const wrong = defineWorkflow({ id: 'wrong' }, ({ node }) => {
  node('a', 'core.delay', { config: { delayMss: 5 } });
});
export default defineProject({ workflows: [wrong] });
`;
const MISSPELT_OUTPUT = `import { defineNode, defineProject, defineWorkflow, Type, when } from ${BUILD};
const price = defineNode({
  typeId: 'acme.price',
  description: 'Adds the tax.',
  safety: 'pure',
  outputs: Type.Object({ cents: Type.Integer() }),
  run: () => ({ cents: 5 }),
});
const order = defineWorkflow({ id: 'order' }, ({ node }) => {
  const priced = node('price', price);
  node('charge', 'core.noop', { after: when(priced, 'nodes.price.cent > 100') });
});
export default defineProject({ nodes: [price], workflows: [order] });
`;
const TWICE = `import { defineNode, defineProject } from ${BUILD};
const one = () =>
  defineNode({ typeId: 'acme.one', description: 'One.', safety: 'pure', run: () => ({}) });
export default defineProject({ nodes: [one(), one()] });
`;

describe('a project with a problem', () => {
  it.each([
    ['that is no code', 'const a = 1;\nexport default = a;\n', /capstan\.config\.ts:2.*SyntaxError/s],
    ['that throws', "const a = 1;\n\nthrow new Error('no luck');\n", /capstan\.config\.ts:3:7: no luck/],
    ['whose node has a reserved name', TWICE.replaceAll('acme.one', 'core.one'), /capstan\.config\.ts:3:3: core\.one/],
    ['that has a node twice', TWICE, /capstan\.config\.ts:3:3: acme\.one is defined twice/],
    [
      'whose workflow is wrong',
      WRONG_WORKFLOW,
      /capstan\.config\.ts:2:15: workflow "wrong": .* the node "a": .*delayMs/,
    ],
    [
      'whose condition reads an output that its own node does not have',
      MISSPELT_OUTPUT,
      /capstan\.config\.ts:9:15: workflow "order": condition of the edge from "price" to "charge": .*"cent".*It has cents/,
    ],
    ['that imports what is not there', "import './absent.ts';\n", /absent\.ts/],
    ['that exports nothing', 'export const a = 1;\n', /capstan\.config\.ts: its default export is not a project/],
  ])('is told where: %s', async (_what, text, message) => {
    const folder = projectOf({ 'capstan.config.ts': text });
    const problem = await startHere(environmentOf(folder)).catch((error: Error) => error);
    expect(problem).toBeInstanceOf(ProjectProblem);
    expect((problem as ProjectProblem).message).toMatch(message);
    expect((problem as ProjectProblem).message).not.toMatch(/^\s+at /m);
  });

  it('ends the start, without a stack', async () => {
    const folder = projectOf({ 'capstan.config.ts': "const a = 1;\n\nthrow new Error('no luck');\n" });
    const { code, output } = await runProgram(['serve', '--project', folder], { PORT: '0', CAPSTAN_DATA: newFolder() });
    expect(code, output).toBe(1);
    expect(output).toMatch(/could not load the project:\n.*capstan\.config\.ts:3:7: no luck/);
    expect(output).not.toMatch(/^\s+at /m);
  });

  it('is told that there is none', async () => {
    const { code, output } = await runProgram(['serve', '--project', newFolder()], { PORT: '0' });
    expect(code).toBe(1);
    expect(output).toContain('has no capstan.config.ts');
  });
});

const STARTED_BY_OTHERS = `import { defineProject, defineWorkflow, Type } from ${BUILD};
const hooked = defineWorkflow(
  {
    id: 'hooked',
    variables: { number: Type.Number() },
    triggers: [
      { id: 'issues', type: 'webhook', config: { scheme: 'github', inputs: { number: 'body.issue.number' } } },
      { id: 'yearly', type: 'schedule', config: { cron: '0 0 1 1 *', inputs: { number: 1 } } },
    ],
  },
  ({ node, variables }) => void node('echo', 'core.identity', { inputs: { number: variables.number } }),
);
export default defineProject({ workflows: [hooked] });
`;

describe('triggers of a project', () => {
  it('start runs of one tenant, keep their URLs, and give way to those of the tenant itself', async () => {
    const folder = projectOf({ 'capstan.config.ts': STARTED_BY_OTHERS });
    const environment = { ...environmentOf(folder), CAPSTAN_SHARED_TENANT: 'alpha' };
    const [triggers, secret] = ['/v1/host/capstan/triggers?workflowId=hooked', 'a-secret-of-the-sender'];
    const first = await startHere(environment);
    const [trigger, ...more] = (await first.as('owner').get(triggers)).body.items;
    expect([trigger.name, more]).toEqual(['issues', []]);
    expect((await first.as('other').get(triggers)).body.items).toEqual([]);
    const { body: schedules } = await first.as('owner').get('/v1/host/capstan/schedules?workflowId=hooked');
    expect(schedules.items).toMatchObject([{ belongsTo: 'workflow:hooked/yearly' }]);
    await first.as('owner').post(`/v1/host/capstan/triggers/${trigger.id}:rotate`, { secret });
    await first.stop();

    const second = await startHere(environment);
    const owner = second.as('owner');
    const [same] = (await owner.get(triggers)).body.items;
    expect(new URL(same.url).pathname).toBe(new URL(trigger.url).pathname);
    const { body } = await send(same.url, fromGitHub(secret, ISSUE_OPENED));
    const run = await owner.ended(body.runId);
    expect(run).toMatchObject({ status: 'completed', nodeStates: { echo: { outputs: { number: 1347 } } } });
    expect(run.owner).toMatchObject({ tenant: 'alpha', principal: 'trigger:hooked/issues' });
    const own = { id: 'hooked', version: '1', nodes: [{ id: 'a', typeId: 'core.noop' }] };
    expect((await owner.post('/v1/host/capstan/workflows', own)).status).toBe(201);
    await second.stop();

    const third = await startHere(environment);
    expect((await third.as('owner').get(triggers)).body.items).toEqual([]);
    await third.stop();
  });

  it('go when another tenant is named', async () => {
    const folder = projectOf({ 'capstan.config.ts': STARTED_BY_OTHERS });
    const served = async (tenant: string): Promise<number[][]> => {
      const host = await startHere({ ...environmentOf(folder), CAPSTAN_SHARED_TENANT: tenant });
      const count = async (key: 'owner' | 'other', what: string): Promise<number> =>
        (await host.as(key).get(`/v1/host/capstan/${what}?workflowId=hooked`)).body.items.length;
      const counts = [
        [await count('owner', 'triggers'), await count('owner', 'schedules')],
        [await count('other', 'triggers'), await count('other', 'schedules')],
      ];
      await host.stop();
      return counts;
    };
    expect(await served('alpha')).toEqual([
      [1, 1],
      [0, 0],
    ]);
    expect(await served('beta')).toEqual([
      [0, 0],
      [1, 1],
    ]);
  });
});

/** Writes a line for each attempt of an effect; the second effect never ends while the file `hold` is there. */
const PAYING = `import { appendFileSync, existsSync } from 'node:fs';
import { defineNode, defineProject, defineWorkflow } from ${BUILD};
const at = (name: string): URL => new URL(name, import.meta.url);
const pay = defineNode({
  typeId: 'acme.pay',
  description: 'Reserves and charges.',
  safety: 'write',
  run: async ({ effect }) => {
    const attempt = (name: string, key: string): void => appendFileSync(at('ledger.txt'), \`\${name} \${key}\\n\`);
    const reserved = await effect('reserve', ({ idempotencyKey }) => (attempt('reserve', idempotencyKey), 'r1'));
    const charged = await effect('charge', async ({ idempotencyKey }) => {
      attempt('charge', idempotencyKey);
      if (existsSync(at('hold'))) await new Promise(() => {});
      return 'c1';
    });
    return { reserved, charged };
  },
});
const paying = defineWorkflow({ id: 'paying' }, ({ node }) => void node('pay', pay));
export default defineProject({ nodes: [pay], workflows: [paying] });
`;

describe('a host that is killed', () => {
  it('in the middle of an effect of a project attempts it again under its key, and repeats no other', async () => {
    const folder = projectOf({ 'capstan.config.ts': PAYING, hold: '', 'ledger.txt': '' });
    const ledger = (): string[] => readFileSync(join(folder, 'ledger.txt'), 'utf8').split('\n').slice(0, -1);
    const first = await start(environmentOf(folder));
    const runId = await first.as('owner').run('paying');
    await until(async () => ledger().some((line) => line.startsWith('charge')), Boolean);
    await kill(first);
    rmSync(join(folder, 'hold'));
    const second = await start(environmentOf(folder));
    const owner = second.as('owner');
    const ended = await owner.ended(runId);
    expect(ended).toMatchObject({
      status: 'completed',
      nodeStates: { pay: { outputs: { reserved: 'r1', charged: 'c1' } } },
    });
    const [reserve, charge, again, ...rest] = ledger();
    expect(reserve).toMatch(/^reserve /);
    expect(charge).toMatch(/^charge /);
    expect(again).toBe(charge);
    expect(rest).toEqual([]);
    expectSoundLog(await owner.events(runId));
    expect(await eventsOf(owner, runId, 'node.completed')).toHaveLength(1);
    await stop(second);
  });
});

function spawnDev(folder: string): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, [inject('program'), 'dev', folder, '--port', '0'], {
    env: { PATH: process.env.PATH ?? '', CAPSTAN_API_KEYS: JSON.stringify(Object.values(KEYS)) },
  });
}

describe('capstan dev', () => {
  it('serves a project, and again when it changes or is repaired', { timeout: 120_000 }, async () => {
    const folder = join(newFolder(), 'project');
    cpSync(EXAMPLE, folder, { recursive: true });
    const child = spawnDev(folder);
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        output += String(chunk);
        // A log in the folder of the project, which every change would lengthen, is no change.
        appendFileSync(join(folder, 'dev.log'), String(chunk));
      });
    const urls = (): string[] => [...output.matchAll(/^listening on (http:\S+)$/gm)].map(([, url = '']) => url);
    const reminder = async (): Promise<unknown> => {
      const { body } = await new Api(urls().at(-1)!, KEYS.owner.key).get(
        '/v1/host/capstan/workflows/remind-of-invoice',
      );
      return body.name;
    };
    await until(async () => urls().length === 1, Boolean);
    expect(await reminder()).toBe('Remind of an invoice');
    const file = join(folder, 'workflows.ts');
    const text = readFileSync(file, 'utf8');
    // As many editors do it: a new file takes the place of the old one. Its name comes from the file of settings.
    writeFileSync(join(folder, '.new'), text.replace("'Remind of an invoice'", 'process.env.REMINDER_NAME'));
    writeFileSync(join(folder, '.env'), 'REMINDER_NAME="Remind politely"\n');
    renameSync(join(folder, '.new'), file);
    await until(async () => urls().length === 2, Boolean);
    expect(await reminder()).toBe('Remind politely');
    appendFileSync(file, 'export const broken = ;\n');
    await until(async () => output.includes('Waiting for a change'), Boolean);
    expect(output).toMatch(/workflows\.ts:\d+/);
    writeFileSync(file, text);
    await until(async () => urls().length === 3, Boolean);
    expect(await reminder()).toBe('Remind of an invoice');
    child.kill('SIGTERM');
    await once(child, 'close');
    expect(child.exitCode).toBe(0);
    expect(output).not.toContain('dev.log');
  });

  it('suggests a command that returns, although the workflow of a new project takes a day', async () => {
    const host = await start({ ...environmentOf(EXAMPLE), CAPSTAN_DATA: newFolder(), CAPSTAN_API_KEYS: '' });
    const [, key = '', command = ''] = /CAPSTAN_KEY=(\S+) npx capstan (.+)$/m.exec(host.output())!;
    const environment = { CAPSTAN_URL: host.url, CAPSTAN_KEY: key };
    const started = await capstan(command.split(' '), { environment });
    expect(started).toMatchObject({ code: 0, out: expect.stringContaining('Follow it with: capstan events run-') });
    await kill(host);
  });

  it('stores in the folder that CAPSTAN_DATA names, also in the .env of the project', { timeout: 60_000 }, async () => {
    const folder = join(newFolder(), 'project');
    cpSync(EXAMPLE, folder, { recursive: true });
    const data = join(newFolder(), 'chosen');
    writeFileSync(join(folder, '.env'), `CAPSTAN_DATA=${data}\n`);
    const child = spawnDev(folder);
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += String(chunk);
    });
    await until(async () => output.includes('listening on'), Boolean);
    child.kill('SIGTERM');
    await once(child, 'close');
    expect(readdirSync(data)).not.toEqual([]);
    expect(existsSync(join(folder, '.capstan', 'data'))).toBe(false);
  });
});
