import { expect, it } from 'vitest';
import { readStore, writeStore } from '../support/database.ts';
import { line, node, register, workflow } from '../support/definitions.ts';
import { recorder } from '../support/recorder/recorder.ts';
import { onEachStore } from '../support/stores.ts';

/** A log that is not what was written is not read as if it were, and nobody else suffers. */

const twoSteps = workflow([node('a'), node('b')], line('a', 'b'));

/** What can happen to a log in a store, by the statement that does it to the run. */
const DAMAGE: Record<string, (runId: string) => string> = {
  'a text changed': (runId) =>
    `UPDATE events SET body = replace(body, '"b"', '"a"') WHERE run_id = '${runId}' AND sequence = 3`,
  'a value changed that the fold does not need': (runId) =>
    `UPDATE events SET body = replace(body, 'node.started', 'node.startex') WHERE run_id = '${runId}' AND sequence = 1`,
  'an event is gone': (runId) => `DELETE FROM events WHERE run_id = '${runId}' AND sequence = 2`,
  'the end is gone': (runId) => `DELETE FROM events WHERE run_id = '${runId}' AND sequence > 3`,
  'bytes that are no event': (runId) => `UPDATE events SET body = '{"ty' WHERE run_id = '${runId}' AND sequence = 2`,
  'two events have changed places': (runId) =>
    `UPDATE events SET body = (SELECT e.body FROM events e WHERE e.run_id = events.run_id AND e.sequence = 7 - events.sequence)
     WHERE run_id = '${runId}' AND sequence IN (3, 4)`,
};

onEachStore('a run whose log was damaged', (host) => {
  it.each(Object.entries(DAMAGE))('is not shown when %s', async (_, damage) => {
    recorder.excuse(500);
    const api = host().as('editor');
    const id = await register(api, twoSteps);
    const [harmed, sound] = [await api.run(id), await api.run(id)];
    for (const runId of [harmed, sound]) expect((await api.ended(runId)).status).toBe('completed');
    await writeStore(host().config, [damage(harmed!)]);
    expect((await api.get(`/v1/runs/${harmed}`)).status).toBe(500);
    expect((await api.get(`/v1/runs/${sound}`)).body.status).toBe('completed');
  });

  it('is taken as it is if it is older than digests, and has one with its next event', async () => {
    const api = host().as('editor');
    const id = await register(api, workflow([node('a', 'core.delay', { config: { ms: 600_000 } })], []));
    const runId = await api.run(id);
    await writeStore(host().config, [`UPDATE runs SET log_seal = NULL WHERE run_id = '${runId}'`]);
    await api.post(`/v1/runs/${runId}/cancel`);
    expect((await api.ended(runId)).status).toBe('cancelled');
    const query = `SELECT log_seal, sequence FROM runs WHERE run_id = '${runId}'`;
    const [row] = await readStore<{ log_seal: string; sequence: number }>(host().config, query);
    expect(row!.log_seal).toMatch(new RegExp(`^${row!.sequence}:[0-9a-f]{32}$`));
  });
});
