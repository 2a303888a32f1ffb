import { expect, it } from 'vitest';
import { type Answer, Api } from '../support/api.ts';
import { node, unique, WORKFLOWS, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { onEachStore } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** Schedules that a definition asks for: they come, change and go with it. */

type Body = Answer['body'];

const SCHEDULES = '/v1/host/capstan/schedules';
const EVERY_SECOND = '* * * * * *';
const YEARLY = '0 0 1 1 *';

const trigger = (config: object, more: object = {}) => ({ id: 'yearly', type: 'schedule', config, ...more });

function triggered(id: string, triggers: readonly object[], more: object = {}) {
  return { ...workflow([node('a')]), id, triggers, ...more };
}

onEachStore('a trigger', (host) => {
  const editor = (): Api => host().as('editor');
  const register = (definition: object, api = editor()): Promise<Answer> => api.post(WORKFLOWS, definition);
  const schedulesOf = async (id: string, api = editor()): Promise<Body[]> =>
    (await api.get(`${SCHEDULES}?workflowId=${id}`)).body.items;

  async function registered(definition: object & { id: string }, api = editor()): Promise<Body[]> {
    const answer = await register(definition, api);
    expect(answer.status, answer.text).toBe(201);
    return schedulesOf(definition.id, api);
  }

  it('makes a schedule that belongs to its workflow, and is changed there alone', async () => {
    const id = unique('wf');
    const config = { cron: YEARLY, timezone: 'Europe/Berlin', inputs: { a: 1 }, missed: 'once' };
    const [schedule, ...more] = await registered(triggered(id, [{ id: 'm', type: 'manual' }, trigger(config)]));
    expect(more).toEqual([]);
    expect(schedule).toMatchObject({ ...config, workflowId: id, enabled: true, belongsTo: `workflow:${id}/yearly` });
    const path = `${SCHEDULES}/${schedule.id}`;
    expectRefusal(await editor().request('DELETE', path), 409, 'conflict');
    expectRefusal(await editor().request('PUT', path, { workflowId: id, cron: YEARLY }), 409, 'conflict');
  });

  it('starts runs', async () => {
    const id = unique('wf');
    await registered(triggered(id, [trigger({ cron: EVERY_SECOND, inputs: { n: 7 } })]));
    const runs = async (): Promise<Body[]> => (await editor().get(`/v1/host/capstan/runs?workflowId=${id}`)).body.items;
    const [{ runId }] = await until(runs, (found) => found.length >= 2);
    expect((await editor().get(`/v1/runs/${runId}`)).body).toMatchObject({ inputs: { n: 7 } });
    expect((await editor().request('DELETE', `${WORKFLOWS}/${id}`)).status).toBe(204);
    expect(await schedulesOf(id)).toEqual([]);
  });

  it('is left alone by what does not concern it, and changes without starting over', async () => {
    const id = unique('wf');
    const config = { cron: YEARLY };
    const [first] = await registered(triggered(id, [trigger(config)]));
    expect(await registered(triggered(id, [trigger(config)]))).toEqual([first]);
    expect(await registered(triggered(id, [trigger(config)], { name: 'Another' }))).toEqual([first]);
    const [changed] = await registered(triggered(id, [trigger({ ...config, timezone: 'Asia/Tokyo' })]));
    expect(changed).toMatchObject({ id: first.id, timezone: 'Asia/Tokyo', createdAt: first.createdAt });
    expect(changed.nextRunAt).not.toBe(first.nextRunAt);
  });

  it('goes when the definition, or the workflow, does without it, and comes back', async () => {
    const id = unique('wf');
    const [two, one] = [trigger({ cron: YEARLY }, { id: 'two' }), trigger({ cron: YEARLY })];
    expect(await registered(triggered(id, [one, two]))).toHaveLength(2);
    expect(await registered(triggered(id, [one]))).toMatchObject([{ belongsTo: `workflow:${id}/yearly` }]);
    expect(await registered(triggered(id, [{ ...one, enabled: false }]))).toEqual([]);
    expect(await registered(triggered(id, [one]))).toHaveLength(1);
    await editor().request('DELETE', `${WORKFLOWS}/${id}`);
    expect(await schedulesOf(id)).toEqual([]);
    expect(await registered(triggered(id, [one]))).toHaveLength(1);
  });

  it.each([
    ['no time at all', trigger({}), 'A schedule must have either cron or runAt'],
    ['a time that never comes', trigger({ cron: '0 0 30 2 *' }), 'never comes'],
    ['a member that means nothing', trigger({ cron: YEARLY, every: 'day' }), 'triggers[0].config'],
    ['a time zone that is none', trigger({ cron: YEARLY, timezone: 'Mars/Base' }), 'Mars/Base'],
    ['a time that has passed', trigger({ runAt: '2001-01-01T00:00:00Z' }), 'in the past'],
  ])('with %s is refused, together with its definition', async (_what, bad, message) => {
    const id = unique('wf');
    const answer = await register(triggered(id, [bad]));
    expectRefusal(answer, 422, 'validation_error');
    expect(answer.body.message).toContain(message);
    expect((await editor().get(`${WORKFLOWS}/${id}`)).status).toBe(404);
  });

  it('gives its runs what the new definition wants, or is refused with it', async () => {
    const id = unique('wf');
    const wanting = { variables: [{ name: 'region', type: 'string', required: true }] };
    const [before] = await registered(triggered(id, [trigger({ cron: YEARLY })]));
    const refused = await register(triggered(id, [trigger({ cron: YEARLY })], wanting));
    expect(refused.status).toBe(422);
    expect(await schedulesOf(id)).toEqual([before]);
    const config = { cron: YEARLY, inputs: { region: 'eu' } };
    expect(await registered(triggered(id, [trigger(config)], wanting))).toMatchObject([{ inputs: { region: 'eu' } }]);
  });

  it('takes the right to make schedules', async () => {
    const { body } = await host()
      .as('owner')
      .post('/v1/host/capstan/keys', { name: 'x', scopes: ['workflows:write'] });
    const api = new Api(host().url, body.key);
    const id = unique('wf');
    const answer = await register(triggered(id, [trigger({ cron: YEARLY })]), api);
    expectRefusal(answer, 403, 'forbidden');
    expect(answer.body.details).toMatchObject({ scopeRequired: 'schedules:write' });
    expect((await register(triggered(id, []), api)).status).toBe(201);
  });

  it('belongs to its workspace and its tenant', async () => {
    const id = unique('wf');
    const [here] = await registered(triggered(id, [trigger({ cron: YEARLY })]));
    const north = host().as('workspace');
    const other = host().as('other');
    expect(await registered(triggered(id, [trigger({ cron: EVERY_SECOND })]), north)).toHaveLength(1);
    expect(await registered(triggered(id, [trigger({ cron: EVERY_SECOND })]), other)).toHaveLength(1);
    await north.request('DELETE', `${WORKFLOWS}/${id}`);
    await other.request('DELETE', `${WORKFLOWS}/${id}`);
    expect(await schedulesOf(id)).toEqual([here]);
  });

  it('is there once, and as the last definition has it, however many change it at once', async () => {
    const id = unique('wf');
    const minutes = Array.from({ length: 8 }, (_, minute) => minute);
    const answers = await Promise.all(
      minutes.map((minute) => register(triggered(id, [trigger({ cron: `${minute} 0 1 1 *` })]))),
    );
    for (const { status } of answers) expect([201, 409]).toContain(status);
    const { body: current } = await editor().get(`${WORKFLOWS}/${id}`);
    expect(await schedulesOf(id)).toMatchObject([{ cron: current.triggers[0].config.cron }]);
  });
});
