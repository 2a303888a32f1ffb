import { expect, it } from 'vitest';
import { onEachStore } from '../support/stores.ts';

onEachStore('the life of a run', (host) => {
  it('goes from created to completed and can be read at once', async () => {
    const api = host().as('editor');
    const created = await api.post('/v1/runs', { workflowId: 'conformance-noop' });
    expect(created.status).toBe(201);
    expect(created.body).toMatchObject({
      runId: expect.stringMatching(/^run-[a-z0-9]{16,}$/),
      status: expect.any(String),
    });
    expect(created.body.eventsUrl).toBe(`${host().url}/v1/runs/${created.body.runId}/events`);
    const snapshot = await api.ended(created.body.runId);
    expect(snapshot).toMatchObject({ runId: created.body.runId, status: 'completed' });
  });

  it('fails with a code and a message when a node fails', async () => {
    const api = host().as('editor');
    const snapshot = await api.ended(await api.run('conformance-failure'));
    expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'conformance_test_failure' } });
  });
});
