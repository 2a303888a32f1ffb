import { expect, it } from 'vitest';
import { node, register, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { killableHosts } from '../support/killed.ts';

/** What is left of a disk is for what has begun: nothing new is begun, and nothing that runs is lost. */

const { start, stop, newFolder } = killableHosts();
const waiting = workflow([node('a', 'core.delay', { config: { ms: 300 } })], []);

it('a host short of disk space begins no new runs, ends those that have begun, and says so', {
  timeout: 60_000,
}, async () => {
  const folder = newFolder();
  const roomy = await start({ CAPSTAN_DATA: folder });
  const id = await register(roomy.as('editor'), waiting);
  const runId = await roomy.as('editor').run(id);
  await stop(roomy);
  const host = await start({ CAPSTAN_DATA: folder, CAPSTAN_MIN_FREE_BYTES: String(Number.MAX_SAFE_INTEGER) });
  const api = host.as('editor');
  expect((await api.ended(runId)).status).toBe('completed');
  const refused = await api.post('/v1/runs', { workflowId: id });
  expectRefusal(refused, 503, 'service_unavailable');
  expect(refused.body.details).toEqual({ reason: 'storage' });
  expect(refused.headers.get('retry-after')).toBe('30');
  const forked = await api.post(`/v1/runs/${runId}:fork`, { mode: 'branch', fromSeq: 0 });
  expectRefusal(forked, 503, 'service_unavailable');
  expect((await api.get('/readyz')).body).toMatchObject({ status: 'ready', storage: 'low' });
  expect((await api.get('/metrics')).text).toMatch(/^capstan_disk_free_bytes \d/m);
  await stop(host);
});
