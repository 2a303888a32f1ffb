import { afterEach, describe, expect, it } from 'vitest';
import { type Config, readConfig } from '../../src/config.ts';
import type { Answer } from '../support/api.ts';
import { readStore } from '../support/database.ts';
import { line, node, register, workflow } from '../support/definitions.ts';
import { breakDisk, mendDisk } from '../support/failing-disk.ts';
import { expectSoundLog, killableHosts } from '../support/killed.ts';
import type { HostProcess } from '../support/process.ts';
import { Receiver } from '../support/receiver.ts';
import { recorder } from '../support/recorder/recorder.ts';
import { until } from '../support/until.ts';

/** A disk that fails for a while costs time, and nothing else: nothing stays in the hands of nobody. */

const { start, stop, newFolder } = killableHosts();
const ENDS = ['run.completed'];

const steps = Array.from({ length: 4 }, (_, index) => `s${index}`);
const stepwise = workflow(
  steps.map((id) => node(id, 'core.delay', { config: { ms: 40 } })),
  line(...steps),
);

async function owned(config: Config): Promise<string[]> {
  const rows = await readStore<{ work_id: string }>(config, 'SELECT work_id FROM work WHERE owner IS NOT NULL');
  return rows.map(({ work_id }) => work_id);
}

describe('a host on SQLite whose disk fails for a while', () => {
  let receiver: Receiver;
  afterEach(() => receiver.close());

  async function startOnDisk(): Promise<{ host: HostProcess; config: Config }> {
    recorder.excuse(500);
    receiver = await Receiver.open();
    const folder = newFolder();
    const host = await start({ CAPSTAN_DATA: folder, CAPSTAN_LEASE_MS: '600' });
    return { host, config: readConfig({ data: folder }, {}) };
  }

  it('hands back what it had in hand once the disk is back, with no restart', { timeout: 60_000 }, async () => {
    const { host, config } = await startOnDisk();
    const api = host.as('owner');
    const held: (() => void)[] = [];
    receiver.say((_, response) => {
      held.push(() => response.writeHead(204).end());
      return undefined;
    });
    const subscribed = await api.post('/v1/webhooks', { url: receiver.url, events: ENDS });
    expect(subscribed.status, subscribed.text).toBe(201);
    const id = await register(api, stepwise);
    const runId = await api.run(id);
    await receiver.until((arrivals) => arrivals.length === 1);
    // The delivery has arrived, and what came of it cannot be written down.
    breakDisk(host.pid);
    for (const answer of held.splice(0)) answer();
    receiver.say(() => 204);
    await until(
      async () => host.output(),
      (output) => output.includes('a work item failed'),
    );
    mendDisk(host.pid);
    await until(
      () => owned(config),
      (ids) => ids.length === 0,
    );
    const next = await api.run(id);
    await receiver.until((arrivals) => arrivals.some(({ body }) => body.event.runId === next));
    expectSoundLog(await api.events(runId));
    await stop(host);
  });

  it('refuses meanwhile what it cannot keep, and goes on with runs where their logs end', {
    timeout: 60_000,
  }, async () => {
    const { host, config } = await startOnDisk();
    const api = host.as('editor');
    const id = await register(api, stepwise);
    const runs = await Promise.all(Array.from({ length: 10 }, () => api.run(id)));
    const create = (key: string): Promise<Answer> =>
      api.post('/v1/runs', { workflowId: id }, { 'idempotency-key': key });
    breakDisk(host.pid);
    const refused = await create('during');
    expect(refused.status).toBeGreaterThanOrEqual(500);
    mendDisk(host.pid);
    const created = await until(
      () => create('during'),
      ({ status }) => status === 201,
    );
    for (const runId of [...runs, created.body.runId]) {
      expect((await api.ended(runId)).status).toBe('completed');
      expectSoundLog(await api.events(runId));
    }
    await until(
      () => owned(config),
      (ids) => ids.length === 0,
    );
    await stop(host);
  });
});
