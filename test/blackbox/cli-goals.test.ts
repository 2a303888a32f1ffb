import { beforeAll, expect, it } from 'vitest';
import { GROUPS } from '../../src/cli/commands/index.ts';
import { capstan, type Ran, untried } from '../support/command-line.ts';
import { register, unique } from '../support/definitions.ts';
import { counting, GOALS, judged, PLANS } from '../support/goals.ts';
import { KEYS } from '../support/host.ts';
import { onOneStore } from '../support/stores.ts';

/** contract 5 and 7: goals from the command line, which ends by how they stand. */

const DONE = 0;
const REFUSED = 1;
const USAGE = 2;
const WAITING = 3;

onOneStore('capstan goals', (host) => {
  const editor = () => host().as('editor');
  beforeAll(() => register(editor(), counting));

  const run = (...args: string[]): Promise<Ran> =>
    capstan(['goals', ...args], { environment: { CAPSTAN_URL: host().url, CAPSTAN_KEY: KEYS.editor.key } });

  async function create(...flags: string[]): Promise<string> {
    const { code, json } = await run('create', '--objective', 'Tick them all', '--json', ...flags);
    expect(code).toBe(DONE);
    return json.id;
  }

  it('sets one, with its bounds, and shows what the host answers', async () => {
    const id = await create('--max-iterations', '7', '--max-cost', '2.5', '--timeout-ms', '60000');
    const { body } = await editor().get(`${GOALS}/${id}`);
    expect(body).toMatchObject({ bounds: { maxLoopIterations: 7, maxCostUsd: 2.5, runTimeoutMs: 60_000 } });
    expect(await run('get', id, '--json')).toMatchObject({ code: WAITING, json: body });
    expect((await run('get', id)).out).toContain('Tick them all');
    expect((await run('list', '--state', 'active', '-q')).out).toContain(`${id}\n`);
    expect((await run('list')).out).toContain('Tick them all');
    expect((await run('create')).code).toBe(USAGE);
    expect((await run('create', '--objective', 'x')).err).toContain('--max-iterations, --max-cost and --timeout-ms');
    expect((await run('plan', id)).out).toContain('has no plan yet');
    expect((await run('get', id)).out).toMatch(
      new RegExp(`^next run +none without a plan: capstan goals plan ${id} `, 'm'),
    );
    expect((await run('evaluations', id)).out).toContain(`Make a plan first with: capstan goals plan ${id} `);
    expect((await run('run', id)).err).toContain(`make one with PUT ${PLANS}/${id}/plan or \`capstan goals plan\``);
    const wrong = ['--workflow', counting.id, '--criterion', 'ok=1 +'];
    expect((await run('plan', id, ...wrong)).err).toMatch(/^--criterion ok: /);
    expect((await run('create', '--objective', 'x', '--max-cost', 'much')).code).toBe(USAGE);
    expect((await run('get', 'goal-nowhere')).code).toBe(REFUSED);
  });

  it('is in the inbox with its id, which the other commands take', async () => {
    const id = await create('--max-iterations', '3');
    const environment = { CAPSTAN_URL: host().url, CAPSTAN_KEY: KEYS.editor.key };
    expect((await capstan(['inbox'], { environment })).out).toMatch(
      new RegExp(`^goal +${id} .*Waits to be started`, 'm'),
    );
  });

  it('plans it, works on it and ends well once it is reached', async () => {
    const id = await create('--max-iterations', '3');
    const criterion = 'second=outputs.work.iteration >= 2';
    const planned = await run(
      'plan',
      id,
      '--workflow',
      counting.id,
      '--criterion',
      criterion,
      '--set',
      'a=1',
      '--json',
    );
    expect(planned).toMatchObject({ code: DONE, json: { workflowId: counting.id, inputs: { a: 1 } } });
    expect((await run('plan', id, '--json')).json).toEqual((await editor().get(`${PLANS}/${id}/plan`)).body);
    expect((await run('plan', id, '--workflow', counting.id, '--criterion', 'oops')).code).toBe(USAGE);
    for (const times of [1, 2]) {
      expect((await run('run', id, '-q')).out).toMatch(/^run-\w+\n$/);
      await judged(editor(), id, times);
    }
    const got = await run('get', id);
    expect(got).toMatchObject({ code: DONE, out: expect.stringMatching(/^last verdict +satisfied by run-\w+$/m) });
    expect(got.out).toContain('  second: met; outputs.work.iteration >= 2; where outputs.work.iteration is 2\n');
    const { code, out } = await run('evaluations', id);
    expect(code).toBe(DONE);
    expect(out).toMatch(/\byes\b[\s\S]*\bno\b.*\bsecond\b/);
    expect((await run('evaluations', id, '--json')).json.items).toHaveLength(2);
    expect((await run('run', id)).code).toBe(REFUSED);
  });

  it('pauses, resumes and gives up, which takes a yes', async () => {
    const id = await create('--max-iterations', '3');
    expect((await run('pause', id)).code).toBe(WAITING);
    expect((await run('evaluations', id, '--json')).json).toMatchObject({ paused: true });
    expect((await run('resume', id, '--note', 'go on')).code).toBe(WAITING);
    expect((await run('abandon', id)).code).toBe(USAGE);
    expect(await run('abandon', id, '--yes', '--json')).toMatchObject({ code: REFUSED, json: { state: 'abandoned' } });
    expect((await run('get', id)).code).toBe(REFUSED);
    expect((await run('pause', id)).code).toBe(REFUSED);
  });

  it('shows how far people agree with a verifier, and what they reviewed', async () => {
    const id = unique('ver');
    const verifier = { id, kind: 'criteria', criteria: [{ key: 'any', expression: 'true' }] };
    expect((await editor().post('/v1/host/capstan/verifiers', verifier)).status).toBe(201);
    const goal = await create('--verifier', id, '--max-iterations', '1');
    await run('plan', goal, '--workflow', counting.id);
    const runId = (await run('run', goal, '-q')).out.trim();
    await judged(editor(), goal, 1);
    const signal = { kind: 'flag' };
    expect((await host().as('reviewer').post(`/v1/runs/${runId}/annotations`, { signal })).status).toBe(201);
    const figures = await run('agreement', id, '--period', 'day');
    expect(figures.code).toBe(DONE);
    expect(figures.out).toMatch(new RegExp(`${id}@1 +0 +1 +0 %`));
    expect((await run('agreement', id, '--json')).json).toMatchObject({ reviewed: 1, disputed: 1 });
    expect((await run('agreement', id, '--period', 'year')).code).toBe(USAGE);
    expect((await run('gold-set', id)).out).toMatch(/satisfied +not satisfied +reviewer-of-alpha/);
    expect((await run('gold-set', id, '-q')).out).toBe(`${runId}\n`);
    expect((await run('try-rubric', id)).code).toBe(USAGE);
    expect((await run('try-rubric', id, '--max-cost', '0')).out).toMatch(/not satisfied +satisfied +satisfied/);
  });

  it('has been tried with every command', () => {
    expect(untried(GROUPS.filter(({ name }) => name === 'goals'))).toEqual([]);
  });
});
