import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS, GROUPS } from '../../src/cli/commands/index.ts';
import { Interrupted } from '../../src/cli/terminal.ts';
import { capstan, type Ran, type Sitting, triedCommands, untried } from '../support/command-line.ts';
import { freshFolder } from '../support/database.ts';
import { edge, fixed, line, node, register, unique, workflow } from '../support/definitions.ts';
import { freePort } from '../support/free-port.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { approval, clarification, governanceGate, waitingRun } from '../support/interrupts.ts';
import { runProgram, spawnHost } from '../support/process.ts';
import { Receiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';

/**
 * Goal: every command does what it says against a running host, and ends with the exit code that scripts rely on.
 * Method: the command runs in this process, with a terminal of our own; that none was left out is checked at the end.
 */

const DONE = 0;
const REFUSED = 1;
const USAGE = 2;
const WAITING = 3;
const UNREACHABLE = 4;

let host: TestHost;
const folder = freshFolder();

beforeAll(async () => {
  host = await startTestHost('sqlite', undefined);
});
afterAll(async () => {
  await host?.stop();
  folder.remove();
});

function run(command: string, sitting: Sitting & { who?: keyof typeof KEYS } = {}): Promise<Ran> {
  return runArgs(command.split(' '), sitting);
}

function runArgs(args: readonly string[], { who = 'owner', ...sitting }: Sitting & { who?: keyof typeof KEYS } = {}) {
  const environment = {
    CAPSTAN_URL: host.url,
    CAPSTAN_KEY: KEYS[who].key,
    CAPSTAN_CONFIG: join(folder.path, 'none.json'),
    ...sitting.environment,
  };
  return capstan(args, { ...sitting, environment });
}

function fileOf(content: unknown): string {
  const path = join(folder.path, `${unique('file')}.json`);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

const owner = () => host.as('owner');
const registered = (...args: Parameters<typeof workflow>): Promise<string> => register(owner(), workflow(...args));

async function endedRun(): Promise<string> {
  const runId = await owner().run(await registered([node('a'), node('b')], line('a', 'b')));
  await owner().ended(runId);
  return runId;
}

describe('capstan runs', () => {
  it('start says which run it is; --wait and --follow end with its outcome', async () => {
    const good = await registered([node('a')], [], { variables: [{ name: 'n', type: 'number' }] });
    const bad = await registered([node('a', 'core.fail', { config: { code: 'broken', message: 'It broke.' } })]);
    const slow = await registered([approval('gate')]);

    const started = await run(`runs start ${good} --set n=3 --tag t1 --json`);
    expect(started).toMatchObject({ code: DONE, json: { runId: expect.stringMatching(/^run-/) } });
    expect((await owner().get(`/v1/runs/${started.json.runId}`)).body).toMatchObject({
      inputs: { n: 3 },
      tags: ['t1'],
    });
    expect((await run(`runs start ${good} -q`)).out).toMatch(/^run-\w+\n$/);

    const waited = await runArgs(['runs', 'start', good, '--input', '-', '--wait', '--json'], { input: '{"n":4}' });
    expect(waited).toMatchObject({ code: DONE, json: { status: 'completed', inputs: { n: 4 } } });
    const failed = await run(`runs start ${bad} --wait`);
    expect(failed.code).toBe(REFUSED);
    expect(failed.out).toContain('It broke.');
    expect((await run(`runs start ${slow} --wait`)).code).toBe(WAITING);

    const followed = await run(`runs start ${bad} --follow --json`);
    expect(followed.code).toBe(REFUSED);
    const events = followed.out
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text));
    expect(events.at(0).type).toBe('run.started');
    expect(events.at(-1).type).toBe('run.failed');
  });

  it('shows what came out first, and reads inputs by their declared type', async () => {
    const format = node('b', 'core.openwop.data.string-format', {
      inputs: {
        template: { type: 'static', value: '{{text}}' },
        text: { type: 'variable', variableName: 'text' },
      },
    });
    const nodes = [node('a'), format];
    const id = await registered(nodes, line('a', 'b'), { variables: [{ name: 'text', type: 'string' }] });
    const waited = await run(`runs start ${id} --set text=5 --wait`);
    expect(waited).toMatchObject({
      code: DONE,
      out: expect.stringMatching(/^completed\n\nResult of b:\n {2}text: 5\n/),
    });
    const [, runId = ''] = /^run +(\S+)$/m.exec(waited.out)!;
    expect((await owner().get(`/v1/runs/${runId}`)).body.inputs).toEqual({ text: '5' });
    expect((await run(`runs get ${runId}`)).out).toBe(waited.out);
    expect((await run(`runs start ${id} --set text=6 --wait -q`)).out).toMatch(/^run-\w+ completed\n$/);
    const followed = await run(`runs start ${id} --set text=seven --follow`);
    expect(followed.out).toMatch(/run\.completed[\s\S]*\n\ncompleted\n\nResult of b:\n {2}text: seven\n/);
    const other = /^run +(\S+)$/m.exec(followed.out)![1]!;
    expect((await run(`runs diff ${runId} ${other}`)).out).toMatch(/variables\.text:\n5 +\| seven\n/);
    expect((await run(`runs start ${id} --set text=a --json --input {`)).err).toMatch(
      /^\{"error":"usage","message":".*\n$/,
    );
    expect(JSON.parse((await run('runs get run-nowhere --json')).err)).toMatchObject({ error: 'not_found' });
  });

  it('artifacts lists what a run has made and prints one', async () => {
    const started = await run('runs start support-triage --set subject=a --set plan=pro --wait --json');
    const { runId } = started.json;
    const [artifactId] = (await run(`runs artifacts ${runId} -q`)).out.split('\n');
    expect((await run(`runs artifacts ${runId} ${artifactId}`)).out).toMatch(/^category: /);
    expect((await run(`runs get ${runId}`)).out).toContain(`artifacts  ${artifactId}; read with`);
  });

  it('start with one idempotency key starts one run', async () => {
    const id = await registered([node('a')]);
    const [one, two] = [
      await run(`runs start ${id} -q --idempotency-key k`),
      await run(`runs start ${id} -q --idempotency-key k`),
    ];
    expect(two.out).toBe(one.out);
  });

  it('list finds runs by workflow, status and page', async () => {
    const id = await registered([node('a')]);
    for (const _ of [1, 2, 3]) await owner().ended(await owner().run(id));
    const page = await run(`runs list --workflow ${id} --status completed --limit 2 --json`);
    expect(page.json.items).toHaveLength(2);
    const rest = await run(`runs list --workflow ${id} --limit 2 --cursor ${page.json.nextCursor} --json`);
    expect(rest.json.items).toHaveLength(1);
    expect((await run(`runs list --workflow ${id} --limit 2`)).out).toContain(`--cursor ${page.json.nextCursor}`);
    expect((await run('runs list --status finished')).code).toBe(USAGE);
    expect((await run('runs list --limit many')).code).toBe(USAGE);
  });

  it('get, state, bundle, ancestry and diff print what the host answers', async () => {
    const runId = await endedRun();
    const wire = async (path: string) => (await owner().get(path)).body;
    expect((await run(`runs get ${runId} --json`)).json).toEqual(await wire(`/v1/runs/${runId}`));
    expect((await run(`runs get ${runId} -q`)).out).toBe('completed\n');
    expect((await run(`runs state ${runId} --sequence 1 --json`)).json).toEqual(
      await wire(`/v1/host/capstan/runs/${runId}/state?sequence=1`),
    );
    expect((await run(`runs state ${runId}`)).code).toBe(USAGE);
    expect((await run(`runs state ${runId} --sequence 99`)).code).toBe(REFUSED);
    expect((await run(`runs ancestry ${runId} --json`)).json).toEqual(await wire(`/v1/runs/${runId}/ancestry`));
    expect((await run(`runs bundle ${runId} --max-events 2 --json`)).json).toMatchObject({ truncated: true });
    const path = join(folder.path, 'bundle.json');
    expect((await run(`runs bundle ${runId} --output ${path}`)).code).toBe(DONE);
    expect(JSON.parse(readFileSync(path, 'utf8')).run.runId).toBe(runId);
    expect((await run(`runs bundle ${runId} --output ${join(folder.path, 'no', 'such', 'folder')}`)).code).toBe(USAGE);
    expect((await run(`runs diff ${runId} ${runId}`)).out).toContain('the same');
    expect((await run(`runs get ${runId}`, { who: 'other' })).code).toBe(REFUSED);
  });

  it('pause, resume and cancel move a run, once', async () => {
    const id = await registered([node('a', 'core.delay', { config: { delayMs: 600_000 } })]);
    const [one, two] = [await owner().run(id), await owner().run(id)];
    expect((await run(`runs pause ${one} --immediate --reason lunch`)).code).toBe(DONE);
    expect((await run(`runs pause ${one}`)).code).toBe(REFUSED);
    expect((await run(`runs resume ${one} --json`)).json).toMatchObject({ status: 'running' });
    expect((await run(`runs cancel ${one}`)).out).toContain('cancelled');
    const mixed = await run(`runs cancel ${await endedRun()} ${two} --json`);
    expect(mixed).toMatchObject({ code: REFUSED, json: { results: [{ ok: false }, { ok: true }] } });
    expect((await run(`runs resume ${one}`)).err).toContain('capstan runs fork');
  });

  it('fork replays a run or branches off', async () => {
    const runId = await endedRun();
    expect((await run(`runs fork ${runId} --mode replay --wait --json`)).json).toMatchObject({ status: 'completed' });
    const branch = await run(`runs fork ${runId} --from 1 --set extra=1 --json`);
    expect(branch.json).toMatchObject({ sourceRunId: runId, mode: 'branch', fromSeq: 1 });
    const { runId: branchId } = branch.json;
    await owner().ended(branchId);
    expect((await run(`runs get ${branchId}`)).out).toContain(`branch of ${runId}, from event 1`);
    expect((await run(`runs get ${runId}`)).out).toMatch(new RegExp(`^forks +.*${branchId} \\(completed\\)`, 'm'));
    const again = (await run(`runs fork ${branchId} --from b -q`)).out.trim();
    expect((await run(`runs ancestry ${again}`)).out).toMatch(
      new RegExp(`^${again} is a branch of ${branchId}, .*\\n${branchId} is a branch of ${runId}, from event 1\\n$`),
    );
    expect((await run(`runs ancestry ${runId}`)).out).toContain('has no parent run and is no fork');
    expect((await run(`runs fork ${runId} --mode sideways`)).code).toBe(USAGE);
  });

  it('retry goes on where a run failed, fork from any node, and both name the effects that are repeated', async () => {
    const kept = node('kept', 'core.storage.kv-set', { inputs: { key: fixed('k'), value: fixed(1) } });
    const parsed = node('parse', 'core.openwop.data.json-parse', {
      inputs: { text: { type: 'variable', variableName: 'text' } },
    });
    const nodes = [kept, parsed];
    const variables = [{ name: 'text', type: 'string' as const }];
    const id = await registered(nodes, line('kept', 'parse'), { variables });
    const { runId } = (await run(`runs start ${id} --set text={ --wait --json`)).json;
    const retried = await run(`runs retry ${runId} --set text=[1] --wait --json`);
    expect(retried).toMatchObject({ code: DONE, json: { status: 'completed', forkedFrom: { runId, mode: 'branch' } } });
    expect(retried.err).toMatch(/^Continuing from the node parse\.\nrun-\w+\n$/);
    const forked = await run(`runs fork ${runId} --from kept --set text=[1] --wait --json`);
    expect(forked).toMatchObject({ code: DONE, json: { forkedFrom: { fromSeq: 1 } } });
    expect(forked.err).toContain('Nodes with effects that run again: kept.');
    expect((await run(`runs fork ${runId} --from prase`)).err).toContain('Did you mean parse?');
    expect((await run(`runs retry ${forked.json.runId}`)).err).toContain('has not failed; its status is completed');
  });

  it('retry and fork go on in the last iteration of a loop', async () => {
    const config = { kind: 'criteria', criteria: [{ key: 'a', expression: 'false' }], otherwise: 'revise' };
    const revise = { condition: { type: 'equals' as const, left: 'verdict', right: 'revise' } };
    const nodes = [node('write'), node('check', 'vendor.capstan.verify', { config })];
    const settings = { maxLoopbackIterations: 2 };
    const id = await registered(nodes, [edge('write', 'check'), edge('check', 'write', revise)], { settings });
    const { runId, error } = (await run(`runs start ${id} --wait --json`)).json;
    expect(error).toMatchObject({ code: 'loopback_limit_exceeded' });
    const log = await owner().events(runId);
    const starts = (nodeId: string) => log.filter((event) => event.type === 'node.started' && event.nodeId === nodeId);
    expect(starts('write').map(({ payload }) => payload.attempt)).toEqual([0, 1, 2]);
    expect((await run(`runs retry ${runId} --json`)).json).toMatchObject({ fromSeq: starts('write')[2]!.sequence });
    expect((await run(`runs fork ${runId} --from check --json`)).json).toMatchObject({
      fromSeq: starts('check')[2]!.sequence,
    });
  });

  it('events shows the log, from where it is wanted, and follows it', async () => {
    const runId = await endedRun();
    const log = await owner().events(runId);
    const lines = ({ out }: Ran) =>
      out
        .trim()
        .split('\n')
        .map((text) => JSON.parse(text));
    expect(lines(await run(`runs events ${runId} --json`))).toEqual(log);
    expect(lines(await run(`events ${runId} --after 1 --json`))).toEqual(log.slice(2));
    expect(lines(await run(`events ${runId} --follow --mode debug --json`))).toEqual(log);
    expect((await run(`events ${runId} --mode loud`)).code).toBe(USAGE);
  });

  it('events and reports say in words what was retried, skipped, logged and rejected', async () => {
    const retry = { maxRetries: 1, delayMs: 1 };
    const fails = node('fails', 'core.fail', { config: { code: 'away', message: 'It is away.' }, settings: { retry } });
    const wrong = edge('a', 'never', { condition: { type: 'expression', expression: 'inputs.nothing.size() > 0' } });
    const id = await registered([node('a'), node('never'), fails], [wrong, edge('a', 'fails')]);
    const { out: followed } = await run(`runs start ${id} --follow`);
    expect(followed).toMatch(/node\.retried +fails {2}attempt 1 failed: It is away\. \(away\); attempt 2 in \d/);
    expect(followed).toMatch(/node\.skipped +never {2}the condition of its edge is false/);
    expect(followed).toMatch(/log\.appended +.*warn: .*nothing/);
    const [, runId] = /^run +(\S+)$/m.exec(followed)!;
    const got = (await run(`runs get ${runId}`)).out;
    expect(got).toMatch(/^failed\nIt is away\. \(away\), at the node fails\nwarning.*: .*nothing/);

    const { runId: asking } = await waitingRun(owner(), await registered([approval('gate')]));
    await runArgs(['approvals', 'reject', asking, '--reason', 'too expensive']);
    await owner().ended(asking);
    expect((await run(`runs get ${asking}`)).out).toMatch(/^decisions +gate: reject by \S+: too expensive$/m);
  });

  it('events without a run shows what happens in the tenant, until Ctrl-C', async () => {
    const id = await registered([node('a')]);
    const enough = new AbortController();
    const seen: string[] = [];
    const ran = run('events --json', {
      signal: enough.signal,
      onOut: (text) => {
        seen.push(text);
        enough.abort(new Interrupted());
      },
    });
    // What happens before the feed is open is not in it.
    while (seen.length === 0) await owner().ended(await owner().run(id));
    expect((await ran).code).toBe(DONE);
    expect(JSON.parse(seen[0]!.split('\n')[0]!)).toMatchObject({ at: expect.any(String) });
  });

  it('calls people by the names of their keys, and scripts by what was recorded', async () => {
    const make = async (name: string, ...flags: string[]) =>
      (await runArgs(['keys', 'create', name, '--role', 'editor', '--json', ...flags])).json;
    const [bob, ci] = [await make('laptop', '--person', 'bob'), await make('ci')];
    expect((await run('keys list')).out).toMatch(/^key-\S+ +laptop +bob +hk_live_/m);
    const { runId } = await waitingRun(owner(), await registered([approval('a'), approval('b')]));
    for (const [nodeId, { key }] of Object.entries({ a: bob, b: ci }))
      await run(`approvals approve ${runId} ${nodeId}`, { environment: { CAPSTAN_KEY: key } });
    await owner().ended(runId);
    expect((await run(`runs get ${runId}`)).out).toMatch(/^decisions +a: accept by bob; b: accept by ci$/m);
    for (const follow of ['', ' --follow']) {
      const { out } = await run(`events ${runId}${follow}`);
      expect(out).toMatch(/approval\.received +a {2}accept by bob$/m);
      expect(out).toMatch(/approval\.received +b {2}accept by ci$/m);
      expect(out).not.toContain(bob.id);
      expect((await run(`events ${runId}${follow} --json`)).out).toContain(bob.id);
    }
    const audited = await run(`audit list --actor ${bob.id}`);
    expect(audited.out).toContain(`bob (${bob.id})`);
  });

  it('events of a run that has ended ask nobody for an answer', async () => {
    const { runId } = await waitingRun(owner(), await registered([approval('gate')]));
    await runArgs(['approvals', 'approve', runId]);
    await owner().ended(runId);
    const { code, out, err } = await run(`events ${runId} --follow`);
    expect(code).toBe(DONE);
    expect(out).toContain('interrupt.requested');
    expect(err).not.toContain('waiting for an answer');
  });

  it('leaves a run alone when its follower presses Ctrl-C', async () => {
    const runId = (await waitingRun(owner(), await registered([approval('gate')]))).runId;
    const enough = new AbortController();
    const ran = await run(`events ${runId} --follow`, {
      signal: enough.signal,
      onOut: (text) => text.includes('interrupt.requested') && enough.abort(new Interrupted()),
    });
    expect(ran.code).toBe(WAITING);
    expect(ran.err).toContain(`capstan approvals get ${runId}`);
    expect(ran.err).toContain('the run continues');
  });

  it('annotate and annotations take one judgement and list them', async () => {
    const runId = await endedRun();
    expect((await run(`runs annotate ${runId} --rating 5 --node-id a --json`)).json).toMatchObject({
      signal: { kind: 'rating', rating: 5 },
      target: { runId, nodeId: 'a' },
    });
    expect((await run(`runs annotate ${runId}`)).code).toBe(USAGE);
    expect((await run(`runs annotate ${runId} --rating 6`)).code).toBe(USAGE);
    expect((await run(`runs annotate ${runId} --flag --label x`)).code).toBe(USAGE);
    expect((await run(`runs annotations ${runId} --json`)).json.annotations).toHaveLength(1);
  });
});

describe('capstan feedback', () => {
  it('rates, corrects, labels and flags, lists and sums up', async () => {
    const runId = await endedRun();
    expect((await run(`feedback rate ${runId} 2 --note meh`)).code).toBe(DONE);
    expect((await runArgs(['feedback', 'correct', runId, 'so rather', '--node-id', 'a'])).code).toBe(DONE);
    expect((await run(`feedback label ${runId} golden`)).code).toBe(DONE);
    expect((await run(`feedback flag ${runId}`, { who: 'viewer' })).err).toContain('feedback:write');
    expect((await run(`feedback flag ${runId} -q`)).out).toMatch(/^ann-\w+\n$/);
    const listed = await run(`feedback list ${runId}`);
    for (const word of ['meh', 'so rather (a)', 'golden', 'flag']) expect(listed.out).toContain(word);
    const { workflowId } = (await owner().get(`/v1/runs/${runId}`)).body;
    const path = `/v1/host/capstan/feedback/summary?workflowId=${workflowId}`;
    const summed = await run(`feedback summary --workflow ${workflowId} --json`);
    expect(summed.json).toMatchObject({ runs: 1, meanRating: 2 });
    expect(summed.out).toBe(`${(await owner().get(path)).text}\n`);
    expect((await run(`runs list --workflow ${workflowId} --flagged -q`)).out).toBe(`${runId}\n`);
    expect((await run(`feedback summary --workflow ${workflowId}`)).out).toContain(`1  ${workflowId} / a`);
    expect((await run('feedback summary --bucket year')).code).toBe(USAGE);
  });
});

describe('capstan approvals', () => {
  it('approves, rejects, and exits by what was decided', async () => {
    const id = await registered([approval('gate')]);
    const [yes, no] = [(await waitingRun(owner(), id)).runId, (await waitingRun(owner(), id)).runId];
    expect((await run('approvals list')).out).toContain('Approve gate');
    expect((await run('approvals review')).code).toBe(USAGE);
    const ages = (key: string, value: unknown) => (key === 'ageMs' ? undefined : value);
    const inbox = (await owner().get('/v1/host/capstan/inbox')).text;
    expect(JSON.parse((await run('interrupts list --json')).out, ages)).toEqual(JSON.parse(inbox, ages));
    expect((await run('inbox -q')).out).toMatch(/^int-/);
    expect((await run(`approvals get ${yes} --json`)).json).toMatchObject({
      kind: 'approval',
      runId: yes,
      nodeId: 'gate',
    });
    expect((await run(`approvals get ${yes}`, { who: 'viewer' })).out).toContain('Approve gate');
    expect((await run(`approvals approve ${yes}`)).code).toBe(DONE);
    expect(await owner().ended(yes)).toMatchObject({ status: 'completed' });
    expect((await run(`approvals approve ${yes}`)).code).toBe(USAGE);
    const { id: intId } = JSON.parse(inbox).items.find((item: { runId: string }) => item.runId === no);
    expect((await run(`approvals reject ${intId} --note no`)).code).toBe(REFUSED);
    expect(await owner().ended(no)).toMatchObject({ error: { code: 'approval_rejected' } });
  });

  it('shows the question to the person at the terminal and does nothing unless told to', async () => {
    const { runId } = await waitingRun(owner(), await registered([approval('gate', { description: 'Think twice.' })]));
    const declined = await run(`approvals approve ${runId}`, { typed: ['n'] });
    expect(declined.code).toBe(USAGE);
    expect(declined.err).toContain('Think twice.');
    expect((await run(`approvals approve ${runId}`, { typed: ['y'] })).code).toBe(DONE);
  });

  it('counts towards a quorum and says that it waits for others', async () => {
    const gate = governanceGate('gate', { quorum: 2, requiredScope: 'approvals:respond' });
    const { runId } = await waitingRun(owner(), await registered([gate]));
    expect((await run(`approvals approve ${runId} gate`)).code).toBe(WAITING);
    expect((await run(`approvals approve ${runId} gate`, { who: 'reviewer' })).code).toBe(DONE);
  });

  it('answers questions from flags, from a pipe and at the terminal', async () => {
    const id = await registered([clarification('ask', [{ id: 'colour', question: 'Which colour?' }])]);
    const ask = async () => (await waitingRun(owner(), id)).runId as string;
    const outputs = async (runId: string) => (await owner().ended(runId)).nodeStates.ask.outputs;
    const [flags, pipe, typed] = [await ask(), await ask(), await ask()];
    expect((await run(`approvals approve ${flags}`)).err).toContain('capstan approvals answer');
    expect((await run(`approvals answer ${flags}`)).code).toBe(USAGE);
    expect((await run(`approvals answer ${flags} --answer size=1`)).err).toContain('colour');
    expect((await run(`approvals answer ${flags} --answer colour=blue`)).code).toBe(DONE);
    expect(await outputs(flags)).toEqual({ answers: { colour: 'blue' } });
    const input = '{"answers":{"colour":"red"}}';
    expect((await run(`approvals answer ${pipe} --value -`, { input })).code).toBe(DONE);
    expect(await outputs(pipe)).toEqual({ answers: { colour: 'red' } });
    const sat = await run(`approvals answer ${typed}`, { typed: ['green'] });
    expect(sat.code).toBe(DONE);
    expect(sat.err).toContain('Which colour?');
    expect(await outputs(typed)).toEqual({ answers: { colour: 'green' } });
  });

  it.concurrent('finds the question of a node where several are open', async () => {
    const { runId } = await waitingRun(owner(), await registered([approval('one'), approval('two')]));
    for (const nodeId of ['two', 'one']) {
      expect((await run(`approvals get ${runId} ${nodeId}`)).out).toContain(`Approve ${nodeId}`);
      expect((await run(`approvals approve ${runId} ${nodeId}`)).code).toBe(DONE);
    }
    expect((await owner().ended(runId)).status).toBe('completed');
  });

  it.concurrent('finds the question of a node while another node is at work', async () => {
    const busy = node('busy', 'core.delay', { config: { delayMs: 600_000 } });
    const gate = governanceGate('gate', { quorum: 2, requiredScope: 'approvals:respond' });
    const runId = await owner().run(await registered([approval('one'), gate, busy]));
    await owner().until(
      runId,
      ({ nodeStates: { one, gate: two } }) => one?.status === 'suspended' && two?.status === 'suspended',
    );
    expect((await owner().get(`/v1/runs/${runId}`)).body.status).toBe('running');
    expect((await run(`approvals get ${runId} one`)).out).toContain('Approve one');
    expect((await run(`approvals approve ${runId} one`)).code).toBe(DONE);
    expect((await run(`approvals approve ${runId} gate`)).code).toBe(WAITING);
  });
});

describe('capstan workflows', () => {
  it('validate says what is wrong and where, without a host', async () => {
    const nowhere = { CAPSTAN_URL: 'http://127.0.0.1:9' };
    const fetching = node('a', 'core.openwop.http.fetch', { config: { url: 'https://api.example/' } });
    const good = fileOf(workflow([fetching]));
    const broken = fileOf('{\n  "id": oops\n}');
    const misfit = fileOf({ ...workflow([node('a')]), version: 7 });
    const loose = fileOf(workflow([node('a'), node('b', 'core.nothing')], line('a', 'c')));
    expect((await run(`workflows validate ${good}`, { environment: nowhere })).code).toBe(DONE);
    const late = fileOf(
      workflow([node('a')], [], { triggers: [{ id: 't', type: 'schedule', config: { cron: 'soon' } }] }),
    );
    const files = [good, broken, misfit, loose, late];
    const checked = await run(`workflows validate ${files.join(' ')}`, { environment: nowhere });
    expect(checked.code).toBe(REFUSED);
    for (const place of ['line 2', 'version: must be', 'nodes[1].typeId', 'edges[0]', 'triggers[0].config.cron'])
      expect(checked.out).toContain(place);
    expect((await run('workflows validate absent.json')).code).toBe(USAGE);
  });

  it('validate and register take the node types that the host has, its workers included', async () => {
    const typeId = `acme.${unique('bill').replaceAll('-', '')}`;
    const declared = await owner().request('PUT', `/v1/host/capstan/workers/types/${typeId}`, {
      description: 'Bills.',
    });
    expect(declared.status).toBe(200);
    const [file, misspelt] = [typeId, `${typeId}x`].map((each) => fileOf(workflow([node('a', each)])));
    expect(await run(`workflows validate ${file}`)).toMatchObject({ code: DONE, err: '' });
    expect((await run(`workflows register ${file}`)).code).toBe(DONE);
    expect(await run(`workflows register ${misspelt}`)).toMatchObject({
      code: REFUSED,
      err: expect.stringContaining(`${misspelt} is not valid: nodes[0].typeId: Unknown node type`),
    });
    for (const environment of [{ CAPSTAN_URL: 'http://127.0.0.1:9' }, { CAPSTAN_KEY: '' }]) {
      expect(await run(`workflows validate ${file}`, { environment })).toMatchObject({
        code: REFUSED,
        err: expect.stringContaining('without those of projects and workers'),
      });
    }
    expect((await run(`workflows validate ${file}`, { who: 'viewer' })).err).toContain('workflows:write');
  });

  it('register, list, show and delete', async () => {
    const definition = workflow(
      [node('a'), node('b')],
      [{ id: 'e', sourceNodeId: 'a', targetNodeId: 'b', condition: { type: 'truthy', left: 'variables.x' } }],
    );
    const file = fileOf(definition);
    expect((await run(`workflows register ${file}`)).out).toContain(`${definition.id}, version 1`);
    expect((await run(`workflows register ${fileOf(workflow([]))}`)).code).toBe(USAGE);
    expect((await run('workflows list -q')).out).toContain(definition.id);
    expect((await run(`workflows show ${definition.id}`)).out).toContain(
      'a  core.noop\n  └─ variables.x is truthy > b',
    );
    expect((await run(`workflows show ${definition.id} --json`)).json).toEqual(definition);
    expect((await run(`workflows delete ${definition.id}`)).code).toBe(USAGE);
    expect((await run(`workflows delete ${definition.id}`, { typed: ['no'] })).code).toBe(USAGE);
    expect((await run(`workflows delete ${definition.id} --yes`)).code).toBe(DONE);
    expect((await run(`workflows show ${definition.id}`)).code).toBe(REFUSED);
  });
});

describe('capstan workflows, with a folder', () => {
  it('pushes what changed, says beforehand what that is, and pulls it again', async () => {
    const [source, target] = [join(folder.path, 'flows'), join(folder.path, 'pulled')];
    const definition = { ...workflow([node('a'), node('b')], line('a', 'b')), id: unique('pushed') };
    const write = (more: object) =>
      writeFileSync(join(source, 'mine.json'), JSON.stringify({ ...definition, ...more }));
    mkdirSync(source);
    write({});
    expect(await run(`workflows diff ${source}`)).toMatchObject({ code: REFUSED, out: `${definition.id}: new\n` });
    expect(await run(`workflows push ${source}`)).toMatchObject({
      code: DONE,
      out: `${definition.id}: version 1. Run it with: capstan runs start ${definition.id}\n`,
    });
    expect(await run(`workflows push ${source}`)).toMatchObject({
      code: DONE,
      out: `${definition.id}: version 1. Run it with: capstan runs start ${definition.id}\n`,
    });
    expect((await run(`workflows diff ${source}`)).code).toBe(DONE);
    write({ name: 'Another', nodes: [node('a'), node('b', 'core.delay', { config: { delayMs: 1 } })] });
    const changed = await run(`workflows diff ${source} --json`);
    expect(changed).toMatchObject({ code: REFUSED, json: [{ id: definition.id, state: 'changed' }] });
    expect(changed.json[0].paths).toEqual(['name', 'nodes.b.typeId', 'nodes.b.config.delayMs']);
    expect((await run(`workflows push ${source}`)).out).toContain('version 2');
    expect((await run(`workflows pull ${target} -q`)).out).toContain(`${definition.id}.json`);
    expect(JSON.parse(readFileSync(join(target, `${definition.id}.json`), 'utf8'))).toMatchObject({ name: 'Another' });
    writeFileSync(join(source, 'other.json'), '{}');
    expect(await run(`workflows push ${source}`)).toMatchObject({
      code: USAGE,
      err: expect.stringContaining('other.json'),
    });
    expect((await run(`workflows diff ${join(folder.path, 'absent')}`)).code).toBe(USAGE);
  });

  it('pushes no copy of a workflow that the host shares, and says when another one takes its place', async () => {
    const source = join(folder.path, 'shared');
    const { out } = await run('workflows show support-triage --json');
    mkdirSync(source);
    writeFileSync(join(source, 'triage.json'), out);
    const isShared = async (): Promise<boolean> =>
      (await run('workflows list --limit 200 --json')).json.items.some(
        ({ id, shared }: { id: string; shared: boolean }) => id === 'support-triage' && shared,
      );
    expect((await run(`workflows push ${source}`)).out).toContain('not pushed, the host shares the same workflow');
    expect(await isShared()).toBe(true);
    writeFileSync(join(source, 'triage.json'), JSON.stringify({ ...JSON.parse(out), name: 'My own' }));
    expect((await run(`workflows push ${source}`)).out).toContain('workflow support-triage that the host shares');
    expect(await isShared()).toBe(false);
    expect((await run('workflows delete support-triage --yes')).code).toBe(DONE);
    expect(await isShared()).toBe(true);
  });
});

describe('capstan init, dev and test', () => {
  it('make a project, and need one that is there', async () => {
    const made = await run(`init ${join(folder.path, 'my-agent')} --json`);
    expect(made).toMatchObject({ code: DONE });
    expect(made.json.files).toEqual(expect.arrayContaining(['capstan.config.ts', 'package.json', 'workflows.test.ts']));
    for (const path of ['my-agent', join('my-agent', 'capstan.config.ts')]) {
      expect(await run(`workflows validate ${join(folder.path, path)}`)).toMatchObject({
        code: DONE,
        err: expect.stringContaining('Checking the 1 workflow of the project in'),
        out: expect.stringMatching(/^remind-of-invoice \(.*workflows\.ts:\d+:\d+\): valid\n$/),
      });
    }
    mkdirSync(join(folder.path, 'untested'));
    expect(await run(`test ${join(folder.path, 'untested')}`)).toMatchObject({
      code: USAGE,
      err: expect.stringContaining('There are no tests in'),
    });
    for (const command of ['dev', 'test']) expect((await run(`${command} ${folder.path}/absent`)).code).toBe(USAGE);
    expect((await run('worker --concurrency many')).code).toBe(USAGE);
  });
});

describe('capstan schedules, prompts, webhooks, keys and audit', () => {
  it('schedules are made, listed, switched and removed', async () => {
    const id = await registered([node('a')]);
    const made = await runArgs([
      'schedules',
      'create',
      id,
      '--cron',
      '0 3 * * *',
      '--timezone',
      'Europe/Berlin',
      '--set',
      'n=1',
      '--json',
    ]);
    expect(made).toMatchObject({ code: DONE, json: { workflowId: id, inputs: { n: 1 }, enabled: true } });
    const scheduleId: string = made.json.id;
    expect((await run(`schedules list --workflow ${id} -q`)).out).toBe(`${scheduleId}\n`);
    expect((await run(`schedules disable ${scheduleId}`)).out).toContain('Disabled');
    expect((await run(`schedules enable ${scheduleId} --json`)).json).toMatchObject({
      enabled: true,
      inputs: { n: 1 },
    });
    expect((await run(`schedules get ${scheduleId} --json`)).json.cron).toBe('0 3 * * *');
    expect((await run(`schedules create ${id}`)).code).toBe(USAGE);
    expect((await run(`schedules delete ${scheduleId} --yes`)).code).toBe(DONE);
    expect((await run(`schedules get ${scheduleId}`)).code).toBe(REFUSED);
  });

  it('triggers are listed with their URLs, and get another secret', async () => {
    const triggers = [{ id: 'hook', type: 'webhook' as const, config: { scheme: 'stripe' } }];
    const id = await registered([node('a')], [], { triggers });
    expect((await run(`triggers list --workflow ${id}`)).out).toContain('needs a secret');
    const [{ id: triggerId, url }] = (await run(`triggers list --workflow ${id} --json`)).json.items;
    expect((await run(`triggers list --workflow ${id} -q`)).out).toBe(`${triggerId}\n`);
    expect((await run(`triggers get ${triggerId}`)).out).toContain(url);
    const made = await run(`triggers rotate ${triggerId} --grace 60`);
    expect(made).toMatchObject({ code: DONE, out: expect.stringContaining('not shown again') });
    const given = await run(`triggers rotate ${triggerId} --secret -`, { input: 'whsec_of_stripe\n' });
    expect([given.code, given.out.includes('whsec_of_stripe')]).toEqual([DONE, false]);
    const moved = await run(`triggers rotate ${triggerId} --url --json`);
    expect(moved.json.url).not.toBe(url);
    for (const wrong of ['--secret whsec_of_stripe', '--grace soon']) {
      expect((await run(`triggers rotate ${triggerId} ${wrong}`)).code).toBe(USAGE);
    }
    await fetch(moved.json.url, { method: 'POST', body: '{}' });
    const refused = await until(
      () => run(`triggers deliveries ${triggerId} --outcome refused`),
      ({ out }) => out.includes('signature_invalid'),
    );
    expect(refused.out).toContain('OUTCOME');
    expect((await run(`triggers deliveries ${triggerId} --outcome lost`)).code).toBe(USAGE);
  });

  it('goals are set, planned, worked on and decided on, each command ending by the state of the goal', async () => {
    const workflowId = await registered([node('work')]);
    const made = await runArgs(['goals', 'create', '--objective', 'Finish it', '--max-iterations', '2', '--json']);
    expect(made.code).toBe(DONE);
    const { id } = made.json;
    expect((await runArgs(['goals', 'create', '--objective', 'Endless'])).code).toBe(REFUSED);
    expect((await run('goals create --max-iterations 2')).code).toBe(USAGE);
    expect((await run('goals create --objective x --max-cost dear')).code).toBe(USAGE);
    expect((await run(`goals plan ${id}`)).code).toBe(REFUSED);
    const criterion = 'done=run.status == "completed"';
    const planned = await runArgs(['goals', 'plan', id, '--workflow', workflowId, '--criterion', criterion, '--json']);
    expect(planned.json).toEqual({ workflowId, criteria: [{ key: 'done', expression: criterion.slice(5) }] });
    expect((await run(`goals plan ${id} --json`)).json).toEqual(planned.json);
    expect((await run(`goals pause ${id} -q`)).out).toBe(`${id}\n`);
    expect((await run(`goals run ${id}`)).code).toBe(REFUSED);
    expect((await runArgs(['goals', 'resume', id, '--note', 'Go on.'])).code).toBe(WAITING);
    const started = await run(`goals run ${id} -q`);
    expect(started.code).toBe(DONE);
    const reached = await until(
      () => run(`goals get ${id} --json`),
      ({ code }) => code !== WAITING,
    );
    expect(reached.code).toBe(DONE);
    expect(reached.json).toEqual((await owner().get(`/v1/goals/${id}`)).body);
    const verdicts = await run(`goals evaluations ${id}`);
    expect(verdicts.out).toContain(started.out.trim());
    expect((await run(`goals abandon ${id} --yes`)).code).toBe(REFUSED);
    const other = await runArgs(['goals', 'create', '--objective', 'Another', '--timeout-ms', '600000', '-q']);
    expect((await run(`goals abandon ${other.out.trim()}`)).code).toBe(USAGE);
    expect((await run(`goals abandon ${other.out.trim()} --yes --json`)).json.state).toBe('abandoned');
    expect((await run('goals list --state satisfied -q')).out).toContain(id);
  });

  it('verifiers are put, shown by version and removed', async () => {
    const id = unique('ver');
    const put = await runArgs(['verifiers', 'put', id, '--criterion', 'done=run.status == "completed"', '--json']);
    expect(put).toMatchObject({ code: DONE, json: { id, version: 1, kind: 'criteria' } });
    expect(put.json.criteria).toEqual([{ key: 'done', expression: 'run.status == "completed"' }]);
    const second = await runArgs(['verifiers', 'put', id, '--rubric', 'It is kind.', '--model', 'local']);
    expect(second.out).toContain(`${id}@2`);
    expect((await run('verifiers list -q')).out).toContain(`${id}\n`);
    expect((await run(`verifiers get ${id}@1 --json`)).json).toEqual(put.json);
    expect((await run(`verifiers put ${id}`)).code).toBe(USAGE);
    expect((await run(`verifiers put ${id} --criterion nothing`)).code).toBe(USAGE);
    expect((await run(`verifiers delete ${id} --yes`)).code).toBe(DONE);
    expect((await run(`verifiers get ${id}`)).code).toBe(REFUSED);
  });

  it('memory is listed, shown and forgotten', async () => {
    const ref = unique('clerks/one');
    const keep = node('keep', 'vendor.capstan.memory.remember', {
      config: { memoryRef: ref },
      inputs: { content: { type: 'static', value: 'Prefers e-mail.' } },
    });
    const runId = await host.as('owner').run(await registered([keep]));
    const { memoryId } = (await host.as('owner').ended(runId)).nodeStates.keep.outputs;
    expect((await run(`memory list --ref ${ref}`)).out).toContain('Prefers e-mail.');
    expect((await run(`memory get ${memoryId} --json`)).json).toMatchObject({ id: memoryId, memoryRef: ref, runId });
    expect((await run(`memory delete ${memoryId} --yes`)).code).toBe(DONE);
    expect((await run(`memory get ${memoryId}`)).code).toBe(REFUSED);
    expect((await run(`memory forget ${ref} --yes`)).code).toBe(DONE);
    expect((await run(`memory list --ref ${ref} -q`)).out.trim()).toBe('');
  });

  it('heartbeats are made, tell what they saw, and are removed', async () => {
    const id = await registered([node('a')]);
    const made = await run(`heartbeats create --runs-of ${id} --every 3600 --state observed.count --json`);
    expect(made).toMatchObject({ code: DONE, json: { intervalSec: 3_600, observe: { runs: { workflowId: id } } } });
    const heartbeatId: string = made.json.id;
    expect((await run('heartbeats list -q')).out).toContain(`${heartbeatId}\n`);
    expect((await run(`heartbeats get ${heartbeatId} --json`)).json.id).toBe(heartbeatId);
    expect((await run(`heartbeats events ${heartbeatId} --json`)).json.items).toEqual(expect.any(Array));
    expect((await run(`heartbeats pause ${heartbeatId} --json`)).json.nextTickAt).toBeUndefined();
    expect((await run(`heartbeats resume ${heartbeatId}`)).out).toContain('Resumed');
    expect((await run('heartbeats create')).code).toBe(USAGE);
    expect((await run(`heartbeats delete ${heartbeatId} --yes`)).code).toBe(DONE);
    expect((await run(`heartbeats get ${heartbeatId}`)).code).toBe(REFUSED);
  });

  it('commitments are made, listed and removed', async () => {
    const id = await registered([node('a')]);
    const at = new Date(Date.now() + 3_600_000).toISOString();
    const made = await run(`commitments create ${id} --memory mem://a --at ${at} --set n=1 --json`);
    expect(made).toMatchObject({ code: DONE, json: { condition: 'time', state: 'armed', inputs: { n: 1 } } });
    const commitmentId: string = made.json.id;
    const watched = await run(`commitments create ${id} --memory mem://a --key a/b --when observed.found --json`);
    expect(watched.json).toMatchObject({ condition: 'predicate', predicate: { observe: { kv: { key: 'b' } } } });
    expect((await run('commitments list --state armed -q')).out).toContain(`${commitmentId}\n`);
    expect((await run(`commitments get ${commitmentId} --json`)).json).toEqual(made.json);
    expect((await run(`commitments pause ${commitmentId}`)).out).toContain('Paused');
    expect((await run(`commitments resume ${commitmentId} --json`)).json).toEqual(made.json);
    expect((await run(`commitments create ${id} --memory mem://a`)).code).toBe(USAGE);
    expect((await run('commitments list --state nowhere')).code).toBe(USAGE);
    for (const each of [commitmentId, watched.json.id]) {
      expect((await run(`commitments delete ${each} --yes`)).code).toBe(DONE);
    }
    expect((await run(`commitments get ${commitmentId}`)).code).toBe(REFUSED);
  });

  it('prompts are made, versioned, rendered and removed', async () => {
    const templateId = unique('greeting');
    const variables = [{ name: 'name', type: 'string', required: true }];
    const template = { templateId, version: '1.0.0', kind: 'user', text: 'Hello {{name}}', variables };
    expect((await run(`prompts create ${fileOf(template)}`)).out).toBe(`${templateId}@1.0.0\n`);
    expect((await run(`prompts create ${fileOf(template)}`)).code).toBe(REFUSED);
    expect((await run(`prompts update ${fileOf({ ...template, version: '1.1.0' })} -q`)).out).toBe(`${templateId}\n`);
    expect((await run('prompts list --limit 200 -q')).out).toContain(templateId);
    expect((await run(`prompts get ${templateId} --template-version 1.0.0 --json`)).json.version).toBe('1.0.0');
    expect((await run(`prompts render ${templateId} --set name=Ada`)).out).toContain('Ada');
    expect((await run(`prompts delete ${templateId} --yes`)).code).toBe(DONE);
  });

  it('packs are installed, read, expanded and taken away', async () => {
    const name = `vendor.test.${unique('pack')}`;
    const chain = {
      chainId: `${name}.greet`,
      version: '1.0.0',
      label: 'Greet',
      description: 'Says hello',
      parameters: { type: 'object' },
      dag: { nodes: [{ id: 'a', typeId: 'core.noop' }] },
    };
    const pack = { name, version: '1.0.0', kind: 'workflow-chain', engines: { openwop: '>=1.0.0' }, chains: [chain] };
    const file = fileOf(pack);
    expect((await run(`packs install ${file} -q`)).out).toBe(`${name}\n`);
    expect((await run(`packs install ${fileOf({ ...pack, chains: [] })}`)).code).toBe(REFUSED);
    expect((await run('packs list')).out).toContain(name);
    expect((await run(`packs get ${name} --json`)).json.file).toBe(readFileSync(file, 'utf8'));
    expect((await run('packs lockfile --json')).json.packs).toContainEqual(expect.objectContaining({ name }));
    expect((await run(`packs expand ${name} ${chain.chainId}`)).out).toContain('core.noop');
    for (const more of ['', ' --key /nowhere.pem']) {
      expect((await run(`packs sign ${folder.path}${more}`)).code, 'signing needs a key').toBe(USAGE);
    }
    expect((await run(`packs uninstall ${name} --yes`)).code).toBe(DONE);
    expect((await run(`packs get ${name}`)).code).toBe(REFUSED);
  });

  it('packs of agents are installed with the files beside them, and their agents shown', async () => {
    const name = `vendor.test.${unique('agents')}`;
    const agentId = `${name}.one`;
    const agent = { agentId, persona: 'One', modelClass: 'general', systemPromptRef: './one.md' };
    const pack = {
      name,
      version: '1.0.0',
      engines: { openwop: '>=1.1.0' },
      runtime: { language: 'remote', entry: 'pack.json' },
      agents: [agent],
    };
    const file = fileOf(pack);
    expect((await run(`packs install ${file}`)).code).toBe(USAGE);
    writeFileSync(join(dirname(file), 'one.md'), 'You are the one.');
    expect((await run(`packs install ${file} -q`)).out).toBe(`${name}\n`);
    expect((await run('packs list')).out).toContain(agentId);
    expect((await run('agents list -q')).out).toContain(`${agentId}\n`);
    expect((await run(`agents get ${agentId} --json`)).json).toMatchObject({ agentId, packName: name });
    expect((await run(`agents get ${agentId}`)).out).not.toContain('You are the one.');
    expect((await run('agents get vendor.test.nobody.here')).code).toBe(REFUSED);
  });

  it('tools that agents may be allowed are listed and shown', async () => {
    const workflowId = await registered([node('a')], [], { name: 'Tell the weather' });
    const toolId = `capstan.workflow:${workflowId}`;
    expect((await run('tools list')).out).toMatch(new RegExp(`${toolId} +workflow +write .*Tell the weather`));
    expect((await run('tools list --source host-extension -q')).out).not.toContain(toolId);
    const compact = JSON.parse((await run('tools list --source workflow --compact --json')).out);
    const full = JSON.parse((await run('tools list --source workflow --json')).out);
    const named = ({ tools }: { tools: { toolId: string; egress?: string }[] }) => tools.map((tool) => tool.toolId);
    expect(named(compact)).toEqual(named(full));
    expect(compact.tools.every((tool: object) => !('egress' in tool))).toBe(true);
    expect(full.tools.some((tool: object) => 'egress' in tool)).toBe(true);
    expect((await run('tools list --source elsewhere')).code).toBe(USAGE);
    expect((await run(`tools get ${toolId} --json`)).json).toMatchObject({ toolId, safetyTier: 'write' });
    expect((await run('tools get capstan.workflow:none')).code).toBe(REFUSED);
  });

  it('workers are shown with what waits for them, and so is a run that waits', async () => {
    const typeId = `acme.${unique('price').replaceAll('-', '')}`;
    await owner().request('PUT', `/v1/host/capstan/workers/types/${typeId}`, { description: 'Prices.' });
    const runId = await owner().run(await registered([node('a', typeId)]));
    await owner().until(runId, ({ nodeStates }) => nodeStates.a?.status === 'running');
    const listed = await until(
      () => run('workers list'),
      ({ out }) => out.includes(runId),
    );
    expect(listed.out).toMatch(new RegExp(`^${typeId} +default +never +1 +0$`, 'm'));
    expect(listed.out).toContain(`Attempts wait for a worker of ${typeId}.`);
    expect((await run(`runs get ${runId}`)).out).toMatch(
      /^a +running +waiting for a worker of .*; see capstan workers/m,
    );
    expect((await run('workers list --json')).json).toMatchObject({
      types: expect.arrayContaining([expect.objectContaining({ typeId, waiting: 1 })]),
      tasks: expect.arrayContaining([expect.objectContaining({ runId })]),
    });
    expect((await run('workers list -q')).out).toContain(`${typeId}\n`);
    await run(`runs cancel ${runId}`);
  });

  it('lists without entries say what to do next', async () => {
    expect((await run(`runs list --workflow ${unique('none')}`)).out).toContain('capstan runs start');
    expect((await run(`schedules list --workflow ${unique('none')}`)).out).toContain('capstan schedules create');
  });

  it('webhooks are added, listed, rotated, looked after and removed', async () => {
    const receiver = await Receiver.open();
    const added = await run(`webhooks add ${receiver.url} --event run.completed --json`);
    expect(added).toMatchObject({ code: DONE, json: { secret: expect.any(String) } });
    const { webhookId, secret } = added.json;
    expect((await run('webhooks list')).out).toContain(webhookId);
    expect((await run('webhooks list')).out).not.toContain(secret);
    expect((await run(`webhooks rotate ${webhookId} --json`)).json.secret).not.toBe(secret);
    await endedRun();
    await receiver.until((requests) => requests.length >= 1);
    const delivered = async () => (await run(`webhooks deliveries ${webhookId} --state delivered --json`)).json.items;
    const [{ deliveryId }] = await until(delivered, ({ length }) => length === 1);
    expect((await run(`webhooks redeliver ${webhookId} ${deliveryId}`)).code).toBe(DONE);
    await receiver.until((requests) => requests.length >= 2);
    expect((await run(`webhooks add ${receiver.url}`)).code).toBe(USAGE);
    expect(await run(`webhooks add ${receiver.url} --event run.complete`)).toMatchObject({
      code: USAGE,
      err: 'There is no event run.complete. Did you mean run.completed?\n',
    });
    expect((await run(`webhooks deliveries ${webhookId} --state lost`)).code).toBe(USAGE);
    expect((await run(`webhooks remove ${webhookId} --yes`)).code).toBe(DONE);
    await receiver.close();
  });

  it('keys are made, used, rotated and revoked, and are seen once', async () => {
    const made = await run('keys create ci --role viewer --json');
    const { id, key } = made.json;
    const environment = { CAPSTAN_KEY: key };
    expect((await run('runs list', { environment })).code).toBe(DONE);
    expect((await run('keys list', { environment })).err).toContain('keys:manage');
    expect((await run('keys list')).out).not.toContain(key);
    expect((await run(`keys rotate ${id} --grace 172800 -q`)).out).toMatch(/^hk_[\w-]+\n$/);
    const { id: other } = (await run('keys create other --role viewer --json')).json;
    expect((await run(`keys rotate ${other}`)).err).toMatch(/^The old key works until \d{4}-\S+Z\.\n$/);
    expect((await run('keys create ci --role king')).code).toBe(USAGE);
    const asked = await run('keys create asked --json', { typed: ['editor'] });
    expect(asked).toMatchObject({
      code: DONE,
      json: { role: 'editor' },
      err: expect.stringContaining('starts and cancels'),
    });
    expect((await run(`keys recover --data ${join(folder.path, 'nothing')}`)).code).toBe(USAGE);
    expect((await run(`keys revoke ${id} --yes`)).code).toBe(DONE);
    expect((await run('runs list', { environment })).err).toContain('capstan login');
  });

  it('the audit log is read, exported, verified and checked', async () => {
    await endedRun();
    expect((await run('audit list --limit 1 --json')).json.items).toHaveLength(1);
    const path = join(folder.path, 'audit.json');
    expect((await run(`audit export --output ${path}`)).code).toBe(DONE);
    expect((await run(`audit verify ${path} --json`)).json).toMatchObject({ chainValid: true });
    expect((await run('audit check')).code).toBe(DONE);
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, text.replace('run.create', 'run.cancel'));
    expect((await run(`audit verify ${path}`)).code).toBe(REFUSED);
    expect((await run('audit export --from 1 --to 1')).json).toMatchObject({ fromSeq: 1, toSeq: 1 });
  });
});

describe('capstan login', () => {
  const config = () => join(folder.path, 'config', 'credentials.json');
  const environment = () => ({ CAPSTAN_CONFIG: config(), CAPSTAN_URL: '', CAPSTAN_KEY: '' });

  it('keeps a key that the host takes, for its owner alone, and never shows it', async () => {
    const key = KEYS.viewer.key;
    const refused = await run(`login ${host.url}`, { environment: environment(), input: 'no-such-key' });
    expect(refused.code).toBe(REFUSED);
    const done = await run(`login ${host.url}`, { environment: environment(), input: `${key}\n` });
    expect(done.code).toBe(DONE);
    expect(statSync(config()).mode & 0o777).toBe(0o600);
    const listed = await run('runs list', { environment: environment() });
    expect(listed.code).toBe(DONE);
    const looked = await run('doctor', { environment: environment() });
    expect(looked.code).toBe(DONE);
    for (const { out, err } of [refused, done, listed, looked]) expect(out + err).not.toContain(key);
  });

  it('shows a key to no other host than the one it is for', async () => {
    const elsewhere = { ...environment(), CAPSTAN_URL: host.url.replace('127.0.0.1', 'localhost') };
    expect((await run('runs list', { environment: elsewhere })).err).toContain('capstan login');
  });

  it('takes a typed key, forgets it on demand, and wants one', async () => {
    expect((await run('login', { environment: environment(), typed: [KEYS.editor.key] })).code).toBe(DONE);
    expect((await run('logout', { environment: environment() })).out).toContain('Deleted the key');
    expect((await run('doctor', { environment: environment() })).code).toBe(REFUSED);
    expect((await run('login', { environment: environment(), input: '' })).code).toBe(USAGE);
    expect((await run('login nowhere', { environment: environment(), input: 'k' })).code).toBe(USAGE);
  });

  it('says of a file that others can read, or that is none, what to do', async () => {
    mkdirSync(join(folder.path, 'open'), { recursive: true });
    const open = join(folder.path, 'open', 'credentials.json');
    writeFileSync(open, JSON.stringify({ url: host.url, keys: { [host.url]: KEYS.viewer.key } }), { mode: 0o644 });
    const looked = await run('doctor', { environment: { ...environment(), CAPSTAN_CONFIG: open } });
    expect(looked).toMatchObject({ code: REFUSED, out: expect.stringContaining('chmod 600') });
    const absent = { CAPSTAN_URL: host.url, CAPSTAN_KEY: KEYS.viewer.key, CAPSTAN_CONFIG: `${open}.absent` };
    expect((await run('doctor', { environment: absent })).out).toContain(`none at ${open}.absent`);
    writeFileSync(open, 'secret stuff');
    const broken = await run('runs list', { environment: { ...environment(), CAPSTAN_CONFIG: open } });
    expect(broken.code).toBe(USAGE);
    expect(broken.err).not.toContain('secret stuff');
  });
});

describe('capstan', () => {
  it('says that a host cannot be reached, and what to do', async () => {
    const ran = await run('runs list', { environment: { CAPSTAN_URL: 'http://127.0.0.1:9' } });
    expect(ran.code).toBe(UNREACHABLE);
    expect(ran.err).toContain('capstan serve');
  });

  it.each([
    '',
    'bogus',
    'runs',
    'runs bogus',
    'runs get',
    'runs get a b',
    'runs list --bogus',
    'runs start w --input {',
  ])('called as "%s" is wrong usage', async (command) => {
    const ran = await run(command);
    expect(ran.code).toBe(USAGE);
    expect(ran.err).not.toBe('');
  });

  it.each([
    ...COMMANDS.map((spec) => [spec.name, spec.example] as const),
    ...GROUPS.flatMap(({ name, commands }) => commands.map((spec) => [`${name} ${spec.name}`, spec.example] as const)),
  ])('%s --help has an example', async (command, example) => {
    const { code, out } = await capstan([...command.split(' '), '--help']);
    expect(code).toBe(DONE);
    expect(out).toContain(`$ capstan ${example}`);
  });

  it.each(['bash', 'zsh', 'fish'])('has completion for %s with every command', async (shell) => {
    const { code, out } = await run(`completion ${shell}`);
    expect(code).toBe(DONE);
    for (const { name, commands } of GROUPS) {
      expect(out).toContain(name);
      expect(out).toContain(commands.map((spec) => spec.name).join(' '));
    }
  });

  it('is described on its page, command by command', () => {
    const page = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8');
    const rows = GROUPS.map(({ name, commands }) => `| \`${name} ${commands.map((spec) => spec.name).join('\\|')}\``);
    for (const row of rows) expect(page).toContain(row);
    for (const { name } of COMMANDS) expect(page).toMatch(new RegExp(`\`(capstan )?${name}\\b`));
  });

  it('has been tried with every command', () => {
    const elsewhere = ['backup', 'verify']; // in backup.test.ts
    const single = COMMANDS.map(({ name }) => name).filter((name) => !elsewhere.includes(name));
    const here = GROUPS.filter(({ name }) => !existsSync(new URL(`cli-${name}.test.ts`, import.meta.url)));
    expect([...untried(here), ...single.filter((name) => !triedCommands.has(name))]).toEqual([]);
  });
});

describe.concurrent('capstan, as a process of its own', () => {
  it('ends with the exit code that says how it went', async () => {
    const good = await endedRun();
    const asking = await registered([approval('gate')]);
    const codes: [string, number][] = [
      [`runs get ${good}`, DONE],
      ['runs get run-nowhere', REFUSED],
      ['runs get', USAGE],
      [`runs start ${asking} --wait`, WAITING],
    ];
    const environment = { CAPSTAN_URL: host.url, CAPSTAN_KEY: KEYS.owner.key, HOME: folder.path };
    const ends = codes.map(async ([command, code]) => {
      const ran = await runProgram(command.split(' '), environment);
      expect(ran, command).toMatchObject({ code });
    });
    const away = runProgram(['runs', 'list'], { ...environment, CAPSTAN_URL: 'http://127.0.0.1:9' });
    await Promise.all(ends);
    expect(await away).toMatchObject({ code: UNREACHABLE, output: expect.stringContaining('capstan serve') });
  });
});

describe.concurrent('capstan, when its host dies', () => {
  it('follows a run through the death of its host, and ends with the outcome of the run', async () => {
    const data = freshFolder();
    const PORT = String(await freePort());
    const first = await spawnHost({ CAPSTAN_DATA: data.path, PORT });
    const ids = Array.from({ length: 10 }, (_, index) => `n${index}`);
    const delays = ids.map((id) => node(id, 'core.delay', { config: { delayMs: 100 } }));
    const last = node('last', 'core.fail', { config: { code: 'broken', message: 'It broke.' } });
    const workflowId = await register(first.as('owner'), workflow([...delays, last], line(...ids, 'last')));
    const environment = { CAPSTAN_URL: first.url, CAPSTAN_KEY: KEYS.owner.key, HOME: data.path };
    let second: Awaited<ReturnType<typeof spawnHost>> | undefined;
    let restart: Promise<void> | undefined;
    const followed = await capstan(['runs', 'start', workflowId, '--follow', '--json'], {
      environment,
      onOut: (text) => {
        if (restart || !text.includes('node.completed')) return;
        restart = (async () => {
          first.signal('SIGKILL');
          await first.exit;
          second = await spawnHost({ CAPSTAN_DATA: data.path, PORT });
        })();
      },
    });
    await restart;
    const events = followed.out
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text));
    expect(followed.code).toBe(REFUSED);
    expect(events.at(-1).type).toBe('run.failed');
    const sequences = events.map(({ sequence }) => sequence);
    expect(new Set(sequences).size).toBe(sequences.length);
    expect(sequences).toEqual([...sequences].sort((a, b) => a - b));
    const completed = events.filter(({ type }) => type === 'node.completed').map(({ nodeId }) => nodeId);
    expect(completed).toEqual(ids);

    const { runId } = events[0];
    const ran = await runProgram(['runs', 'get', runId, '-q'], environment);
    expect(ran).toEqual({ code: DONE, output: 'failed\n' });
    second!.signal('SIGKILL');
    await second!.exit;
    data.remove();
  });
});
