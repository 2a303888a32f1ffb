import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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
const EXAMPLE = fileURLToPath(new URL('../../examples/project', import.meta.url));
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

describe('capstan init', () => {
  it('makes a project whose test passes and whose workflow runs, for every tenant', { timeout: 120_000 }, async () => {
    const folder = join(newFolder(), 'my-agent');
    const made = await capstan(['init', folder]);
    expect(made, made.err).toMatchObject({ code: 0 });
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
    expect(pushed).toMatchObject({ code: 0, out: 'remind-of-invoice: version 1\n' });
    const { body } = await host.as('owner').get('/v1/host/capstan/workflows?limit=200');
    expect(body.items.find(({ id }: { id: string }) => id === 'remind-of-invoice')).toMatchObject({ shared: false });
    for (const id of ['a-b', 'a_b']) {
      const alike = { id, version: '1', nodes: [{ id: 'a', typeId: 'core.noop' }] };
      expect((await host.as('owner').post('/v1/host/capstan/workflows', alike)).status).toBe(201);
    }
    const pulled = join(newFolder(), 'pulled');
    const asCode = await capstan(['workflows', 'pull', pulled, '--code'], { environment });
    expect(asCode, asCode.err).toMatchObject({ code: 0 });
    expect(readFileSync(join(pulled, 'remind-of-invoice.ts'), 'utf8')).toContain("node('invoice', 'acme.fetchInvoice'");
    const again = await capstan(['workflows', 'push', pulled], { environment });
    expect(again.code, again.err).toBe(0);
    const lines = ['a-b: version 1', 'a_b: version 1', 'remind-of-invoice: version 1'];
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
    ['whose workflow is wrong', WRONG_WORKFLOW, /capstan\.config\.ts:2:15: workflow "wrong": nodes\[0\].*delayMss/],
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

describe('capstan dev', () => {
  it('serves a project, and again when it changes or is repaired', { timeout: 120_000 }, async () => {
    const folder = join(newFolder(), 'project');
    cpSync(EXAMPLE, folder, { recursive: true });
    const child = spawn(process.execPath, [inject('program'), 'dev', folder, '--port', '0'], {
      env: { PATH: process.env.PATH ?? '', CAPSTAN_API_KEYS: JSON.stringify(Object.values(KEYS)) },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
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
    writeFileSync(file, text.replace('Remind of an invoice', 'Remind politely'));
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
  });
});
