import { expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { node, register, unique, WORKFLOWS, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { approval, resolve, waitingRun } from '../support/interrupts.ts';
import { onEachStore } from '../support/stores.ts';

/** A workflow that is inactive or archived starts no runs, on whichever way they are asked for. */

const SCHEDULES = '/v1/host/capstan/schedules';
const DAILY = { cron: '0 3 * * *' };
const STOPPED = [
  ['archived', { status: 'archived' }],
  ['inactive', { status: 'inactive' }],
  ['inactive', { isActive: false }],
] as const;

onEachStore('a workflow that was put away', (host) => {
  const api = (): Api => host().as('editor');
  const schedulesOf = async (id: string): Promise<Answer['body'][]> =>
    (await api().get(`${SCHEDULES}?limit=200`)).body.items.filter(
      ({ workflowId }: Answer['body']) => workflowId === id,
    );

  it.each(STOPPED)('as %s starts no run: %j', async (workflowStatus, more) => {
    const workflowId = await register(api(), workflow([node('a')], [], more));
    const answer = await api().post('/v1/runs', { workflowId });
    expectRefusal(answer, 409, 'conflict');
    expect(answer.body.details).toEqual({ workflowStatus });
    expect((await api().post(SCHEDULES, { workflowId, ...DAILY })).status).toBe(409);
  });

  it.each([{ status: 'active' }, { status: 'draft' }, { isActive: true }] as const)(
    'and one that is %j runs',
    async (more) => {
      const runId = await api().run(await register(api(), workflow([node('a')], [], more)));
      expect((await api().ended(runId)).status).toBe('completed');
    },
  );

  it('is no child of others', async () => {
    const workflowId = await register(api(), workflow([node('a')], [], { status: 'archived' }));
    const calls = workflow([node('call', 'core.subWorkflow', { config: { workflowId } })]);
    const { status, error } = await api().ended(await api().run(await register(api(), calls)));
    expect({ status, code: error.code }).toEqual({ status: 'failed', code: 'unknown_child_workflow' });
  });

  it('is no tool', async () => {
    const metadata = { mcp: { exposeAsTool: true } };
    const shown = await register(api(), workflow([node('a')], [], { metadata }));
    const hidden = await register(api(), workflow([node('a')], [], { metadata, status: 'inactive' }));
    const { text } = await api().get('/v1/tools');
    expect([shown, hidden].map((id) => text.includes(id))).toEqual([true, false]);
  });

  it('loses its schedules, and gets them back with its activity', async () => {
    const triggers = [{ id: 'daily', type: 'schedule', config: DAILY }] as const;
    const definition = workflow([node('a')], [], { id: unique('nightly'), triggers: [...triggers] });
    await register(api(), definition);
    expect(await schedulesOf(definition.id)).toHaveLength(1);
    await register(api(), { ...definition, status: 'archived' });
    expect(await schedulesOf(definition.id)).toEqual([]);
    await register(api(), { ...definition, status: 'active' });
    expect(await schedulesOf(definition.id)).toHaveLength(1);
  });

  it('lets runs that began before go on', async () => {
    const definition = workflow([approval('gate')]);
    await register(api(), definition);
    const { runId } = await waitingRun(api(), definition.id);
    const answer = await api().request('PUT', `${WORKFLOWS}/${definition.id}`, { ...definition, status: 'archived' });
    expect(answer.status, answer.text).toBe(200);
    await resolve(api(), runId, 'gate', { action: 'accept' });
    expect((await api().ended(runId)).status).toBe('completed');
  });
});
