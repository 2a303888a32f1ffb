import { expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { fixed, line, node, register, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { loadSchemas } from '../support/schemas.ts';
import { onOneStore } from '../support/stores.ts';

/** Time travel: a run as it was after each of its events. */

const schemas = loadSchemas();
const set = (id: string, value: unknown) =>
  node(id, 'core.setVariable', { config: { name: 'x' }, inputs: { value: fixed(value) } });

onOneStore('a run as it was', (host) => {
  const api = (): Api => host().as('editor');
  const state = (runId: string, sequence: unknown, by: Api = api()): Promise<Answer> =>
    by.get(`/v1/host/capstan/runs/${runId}/state?sequence=${sequence}`);
  const started = async (): Promise<string> => {
    const gate = node('gate', 'core.approvalGate', { config: { title: 'Go on?' } });
    const definition = workflow([set('one', 1), gate, set('two', 2)], line('one', 'gate', 'two'));
    return api().run(await register(api(), definition));
  };
  const finished = async (): Promise<string> => {
    const runId = await started();
    await api().until(runId, ({ status }) => status === 'waiting-approval');
    await api().post(`/v1/runs/${runId}/interrupts/gate`, { resumeValue: { action: 'accept' } });
    await api().ended(runId);
    return runId;
  };

  it('has the status, the variables and the nodes of that moment', async () => {
    const runId = await finished();
    const events = await api().events(runId);
    const at = (type: string): number => events.find((event) => event.type === type).sequence;
    const states = await Promise.all(events.map(({ sequence }) => state(runId, sequence)));
    for (const { status, body } of states) {
      expect(status).toBe(200);
      expect(schemas.snapshot(body)).toEqual([]);
      expect(body.runId).toBe(runId);
    }
    const bodies = states.map(({ body }) => body);
    expect(bodies[0]).toMatchObject({ status: 'running', variables: {}, nodeStates: {} });
    expect(bodies[at('variable.changed') - 1].variables).toEqual({});
    expect(bodies[at('variable.changed')].variables).toEqual({ x: 1 });
    expect(bodies[at('interrupt.requested')]).toMatchObject({
      status: 'waiting-approval',
      currentNodeId: 'gate',
      interrupt: { data: { title: 'Go on?' } },
      nodeStates: { one: { status: 'completed' }, gate: { status: 'suspended' } },
    });
    expect(bodies[at('interrupt.requested')].endedAt).toBeUndefined();
    expect(bodies[at('node.resumed')]).toMatchObject({ status: 'running', variables: { x: 1 } });
    expect(bodies.at(-1)).toMatchObject({ status: 'completed', variables: { x: 2 } });
  });

  it('is, after its last event, as it is', async () => {
    const runId = await finished();
    const { body: now } = await api().get(`/v1/runs/${runId}`);
    const last = (await api().events(runId)).at(-1).sequence;
    expect((await state(runId, last)).body).toEqual(now);
  });

  it('can be looked at while it goes on, and hands out no tokens', async () => {
    const runId = await started();
    await api().until(runId, ({ status }) => status === 'waiting-approval');
    const last = (await api().events(runId)).at(-1).sequence;
    const { body } = await state(runId, last);
    expect(body.interrupt).toMatchObject({ nodeId: 'gate' });
    expect(body.interrupt).not.toHaveProperty('interruptToken');
    await api().post(`/v1/runs/${runId}/cancel`);
  });

  it.each(['', '-1', '1.5', 'two', '0x1', '1e1', '%20', '9'.repeat(16)])('is refused for %j', async (sequence) => {
    const runId = await api().run('conformance-noop');
    expectRefusal(await state(runId, sequence), 400, 'validation_error');
  });

  it('is refused without a sequence, and beyond the end, which it names', async () => {
    const runId = await finished();
    expectRefusal(await api().get(`/v1/host/capstan/runs/${runId}/state`), 400, 'validation_error');
    const last = (await api().events(runId)).at(-1).sequence;
    const beyond = await state(runId, last + 1);
    expectRefusal(beyond, 422, 'validation_error');
    expect(beyond.body.details).toMatchObject({ lastSequence: last });
    expectRefusal(await state(runId, 999_999_999_999_999), 422, 'validation_error');
  });

  it('is told to those who may see the run, and to nobody else', async () => {
    const runId = await finished();
    expect((await state(runId, 0, host().as('viewer'))).status).toBe(200);
    expectRefusal(await state('run-nobody-knows', 0), 404, 'not_found');
    expectRefusal(await state(runId, 0, host().as('other')), 404, 'not_found');
    expectRefusal(await state(runId, 0, host().as('workspace')), 404, 'not_found');
    expectRefusal(await state(runId, 0, host().as('nothing')), 403, 'forbidden');
    expectRefusal(await state(runId, 0, host().anonymous), 401, 'unauthenticated');
  });
});
