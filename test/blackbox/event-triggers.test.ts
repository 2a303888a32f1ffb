import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/protocol/format/json.ts';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import type { Answer, Api } from '../support/api.ts';
import { chanceOf } from '../support/chance.ts';
import { expression, node, register, unique, WORKFLOWS, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { killableHosts, killsOr } from '../support/killed.ts';
import { apply, drafted, template } from '../support/proposals.ts';
import { fromGitHub, ISSUE_OPENED, send } from '../support/senders.ts';
import { onEachStore } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** Runs that events of this host start: one for each event and trigger, and no endless chain of them. */

type Body = Answer['body'];
type Trigger = WorkflowDefinition['triggers'][number];

const TRIGGERS = '/v1/host/capstan/triggers';
const CHAIN_MAX = 10;

const onEvent = (eventType: string | undefined, config: JsonObject = {}, more: Partial<Trigger> = {}): Trigger => ({
  id: 'on',
  type: 'event',
  ...(eventType === undefined ? {} : { eventType }),
  config,
  ...more,
});

/** A workflow that gives its inputs back, started by events. */
function following(
  eventType: string | undefined,
  config: JsonObject = {},
  more: Partial<WorkflowDefinition> = {},
): WorkflowDefinition {
  const echo = node('echo', 'core.identity', { inputs: { given: expression('inputs') } });
  return { ...workflow([echo]), triggers: [onEvent(eventType, config)], ...more };
}

const runsOf = async (api: Api, workflowId: string): Promise<Body[]> =>
  (await api.get(`/v1/host/capstan/runs?workflowId=${workflowId}&limit=200`)).body.items;
const triggerOf = async (api: Api, workflowId: string): Promise<Body> =>
  (await api.get(`${TRIGGERS}?workflowId=${workflowId}`)).body.items[0];
const echoed = async (api: Api, { runId }: Body): Promise<Body> =>
  (await api.ended(runId)).nodeStates.echo.outputs.given;

onEachStore('an event', (host) => {
  const editor = (): Api => host().as('editor');
  const started = (workflowId: string, count = 1): Promise<Body[]> =>
    until(
      () => runsOf(editor(), workflowId),
      (runs) => runs.length >= count,
    );

  it('starts a run with what the other run resulted in, if the filter lets it pass', async () => {
    const api = editor();
    const source = workflow([node('sum', 'core.identity', { inputs: { total: expression('inputs.a + inputs.b') } })]);
    await register(api, source);
    const filter = `run.workflowId == '${source.id}' && outputs.sum.total > 10.0`;
    const inputs = { total: 'outputs.sum.total', by: 'run.owner.principal', event: 'event.type', from: 'event.runId' };
    const target = await register(api, following('run.completed', { filter, inputs }));
    await api.ended(await api.run(source.id, { inputs: { a: 1, b: 2 } }));
    const passed = await api.run(source.id, { inputs: { a: 10, b: 2 } });
    const [run] = await started(target);
    expect(await echoed(api, run)).toEqual({ total: 12, by: 'editor-of-alpha', event: 'run.completed', from: passed });
    const { body } = await api.get(`/v1/runs/${run.runId}`);
    const { id } = await triggerOf(api, target);
    const trigger = { triggerId: id, eventType: 'run.completed', causedByRunId: passed, chain: 1 };
    expect(body).toMatchObject({ owner: { principal: `trigger:${target}/on` }, metadata: { trigger } });
    expect(await runsOf(api, target)).toHaveLength(1);
  });

  it('starts one run for each trigger, on any number of hosts', async () => {
    const source = await register(editor(), workflow([node('a')]));
    const filter = `run.workflowId == '${source}'`;
    const two = [onEvent('run.completed', { filter }), onEvent('run.completed', { filter }, { id: 'also' })];
    const target = await register(editor(), following('run.completed', {}, { triggers: two }));
    const hosts = host().config.databaseUrl === undefined ? [host()] : [host(), await host().another()];
    try {
      const sources = await Promise.all(
        Array.from({ length: 10 }, (_, index) => hosts[index % hosts.length]!.as('editor').run(source)),
      );
      const runs = await started(target, 2 * sources.length);
      const marks = await Promise.all(
        runs.map(async ({ runId }) => (await editor().get(`/v1/runs/${runId}`)).body.metadata.trigger),
      );
      const pairs = marks.map(({ causedByRunId, triggerId }) => `${causedByRunId} ${triggerId}`);
      expect(pairs).toHaveLength(2 * sources.length);
      expect(new Set(pairs).size).toBe(pairs.length);
      expect(new Set(marks.map(({ causedByRunId }) => causedByRunId))).toEqual(new Set(sources));
    } finally {
      await Promise.all(hosts.slice(1).map((another) => another.stop()));
    }
  });

  it('of a failure, of a child run and of an applied proposal starts runs too', async () => {
    const api = editor();
    const failing = await register(api, workflow([node('boom', 'core.fail')]));
    const parent = await register(
      api,
      workflow([node('child', 'core.subWorkflow', { config: { workflowId: failing } })]),
    );
    const onFailure = await register(
      api,
      following('run.failed', { filter: `run.workflowId == '${failing}'`, inputs: { code: 'run.error.code' } }),
    );
    await api.ended(await api.run(parent));
    await api.ended(await api.run(failing));
    const failures = await started(onFailure, 2);
    for (const run of failures) expect(await echoed(api, run)).toMatchObject({ code: expect.any(String) });

    const onProposal = await register(
      api,
      following('proposal.activated', { inputs: { id: 'event.payload.proposalId' } }),
    );
    const { id: proposalId } = await drafted(api, 'prompt-template', template());
    expect((await apply(host().as('reviewer'), proposalId)).status).toBe(200);
    const [run] = await started(onProposal);
    expect(await echoed(api, run)).toEqual({ id: proposalId });
  });

  it('is seen in its tenant and workspace alone', async () => {
    const inTenant = await register(host().as('other'), following('run.cancelled'));
    const inWorkspace = await register(host().as('workspace'), following('run.cancelled'));
    const everywhere = await register(editor(), following('run.cancelled', { inputs: { by: 'run.owner' } }));
    const waiting = await register(editor(), workflow([node('wait', 'core.delay', { config: { delayMs: 60_000 } })]));
    await editor().post(`/v1/runs/${await editor().run(waiting)}/cancel`, {});
    await started(everywhere);
    expect(await runsOf(host().as('other'), inTenant)).toEqual([]);
    expect(await runsOf(host().as('workspace'), inWorkspace)).toEqual([]);
  });

  it('that leads to itself ends after a chain of runs, and the trigger says why', async () => {
    const api = editor();
    const id = unique('loop');
    const loop = following('run.completed', { filter: `run.workflowId == '${id}'`, inputs: {} }, { id });
    await register(api, loop);
    await api.run(id);
    const { lastError } = await until(
      () => triggerOf(api, id),
      (trigger) => trigger.lastError !== undefined,
    );
    expect(lastError).toMatchObject({ code: 'conflict', message: expect.stringContaining(`${CHAIN_MAX} runs`) });
    const runs = await runsOf(api, id);
    expect(runs).toHaveLength(1 + CHAIN_MAX);
    const chains = await Promise.all(runs.map(async ({ runId }) => (await api.get(`/v1/runs/${runId}`)).body.metadata));
    expect(chains.map((metadata) => metadata?.trigger.chain ?? 0).sort((a, b) => a - b)).toEqual(
      Array.from({ length: CHAIN_MAX + 1 }, (_, index) => index),
    );
  });

  it('is forgotten by a trigger that is switched off, removed, or whose input cannot be computed', async () => {
    const api = editor();
    const source = await register(api, workflow([node('a')]));
    const filter = `run.workflowId == '${source}'`;
    const off = following('run.completed', { filter });
    await register(api, off);
    await register(api, { ...off, triggers: [onEvent('run.completed', { filter }, { enabled: false })] });
    const broken = await register(api, following('run.completed', { filter, inputs: { x: 'outputs.nobody.x' } }));
    const witness = await register(api, following('run.completed', { filter }));
    await api.ended(await api.run(source));
    await started(witness);
    const { lastError } = await until(
      () => triggerOf(api, broken),
      (trigger) => trigger.lastError !== undefined,
    );
    expect(lastError).toMatchObject({ code: 'validation_error', message: expect.stringContaining('input x') });
    expect(await runsOf(api, off.id)).toEqual([]);
    expect(await runsOf(api, broken)).toEqual([]);
    await api.request('DELETE', `${WORKFLOWS}/${witness}`);
    expect(await triggerOf(api, witness)).toBeUndefined();
  });

  it.each([
    ['no event', undefined, {}, 'triggers[0].eventType'],
    ['an event that none may wait for', 'node.completed', {}, 'triggers[0].eventType'],
    ['a name of requests', 'run.failed', { filter: 'body.x' }, 'triggers[0].config.filter'],
    ['a member of webhooks', 'run.failed', { scheme: 'path' }, 'triggers[0].config.scheme'],
  ])('trigger with %s is refused', async (_what, eventType, config, path) => {
    const answer = await editor().post(WORKFLOWS, following(eventType, config));
    expectRefusal(answer, 422, 'validation_error');
    expect(answer.body.message).toContain(path);
  });
});

describe('a host that is killed, again and again', () => {
  const { start, kill, stop, newFolder } = killableHosts();
  const SECRET = 'a secret of the test';
  const ROUNDS = killsOr(2);
  const DELIVERIES = 12;

  it('starts one run for each delivery, and one for the end of each', { timeout: 120_000 }, async () => {
    const chance = chanceOf(815);
    const folder = newFolder();
    let host = await start({ CAPSTAN_DATA: folder });
    const source = workflow([node('a')], [], {
      triggers: [{ id: 'hook', type: 'webhook', config: { scheme: 'github' } }],
    });
    await register(host.as('editor'), source);
    const filter = `run.workflowId == '${source.id}'`;
    const follower = await register(host.as('editor'), following('run.completed', { filter }));
    const hook = await triggerOf(host.as('editor'), source.id);
    await host.as('editor').post(`${TRIGGERS}/${hook.id}:rotate`, { secret: SECRET });
    const path = new URL(hook.url).pathname;
    for (let round = 0; round < ROUNDS; round++) {
      const dying = host;
      const deadAfter = Math.floor(chance() * DELIVERIES);
      let taken = 0;
      const deliver = async (to: string, index: number): Promise<unknown> => {
        const delivery = `${round}-${index}`;
        const answer = await send(to + path, fromGitHub(SECRET, ISSUE_OPENED, { delivery })).catch(() => undefined);
        if (answer && to === dying.url && taken++ === deadAfter) dying.signal('SIGKILL');
        return answer;
      };
      const each = Array.from({ length: DELIVERIES }, (_, index) => index);
      await Promise.all(each.map((index) => deliver(dying.url, index)));
      await kill(dying);
      host = await start({ CAPSTAN_DATA: folder });
      // GitHub lets people send a delivery again, under the same id.
      await Promise.all(each.map((index) => deliver(host.url, index)));
    }
    const api = host.as('editor');
    const total = ROUNDS * DELIVERIES;
    const runs = await until(
      () => runsOf(api, follower),
      (found) => found.length >= total,
    );
    const sources = await runsOf(api, source.id);
    expect(sources).toHaveLength(total);
    const causes = await Promise.all(
      runs.map(async ({ runId }) => (await api.get(`/v1/runs/${runId}`)).body.metadata.trigger.causedByRunId),
    );
    expect(causes.sort()).toEqual(sources.map(({ runId }) => runId).sort());
    await stop(host);
  });
});
