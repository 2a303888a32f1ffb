import { expect, it } from 'vitest';
import { node, register, workflow } from '../support/definitions.ts';
import { approval, resolve, waitingRun } from '../support/interrupts.ts';
import { onEachStore } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** Goal: one tenant cannot fill the store. Method: a small share, runs that use it up, and another tenant that works. */

const SHARE = 40_000;

onEachStore(
  'what one tenant may store',
  (host) => {
    it('is limited: no more runs start, those that wait go on to their end, and others do not notice', async () => {
      const editor = host().as('editor');
      const gated = await register(editor, workflow([approval('gate'), node('after')]));
      const { runId: waiting } = await waitingRun(editor, gated);
      const large = { workflowId: 'conformance-noop', inputs: { text: 'ü'.repeat(4_000) } };
      const started: string[] = [];
      const startOne = () => editor.post('/v1/runs', large);
      let refused = await startOne();
      for (; refused.status === 201; refused = await startOne()) {
        started.push(refused.body.runId);
        expect(started.length).toBeLessThan(10);
      }
      expect(refused).toMatchObject({
        status: 429,
        body: { error: 'rate_limited', details: { scope: 'tenant-storage', limit: SHARE, retryAfterMs: 600_000 } },
      });
      expect(refused.body.details.observed).toBeGreaterThanOrEqual(SHARE);
      expect(refused.headers.get('retry-after')).toBe('600');
      expect((await editor.post(`/v1/runs/${started[0]}:fork`, { mode: 'branch', fromSeq: 1 })).status).toBe(429);

      expect((await resolve(host().as('owner'), waiting, 'gate', { action: 'accept' })).status).toBe(200);
      await editor.until(waiting, ({ status }) => status === 'completed');
      await host().as('other').run('conformance-noop');
      const { text: metrics } = await host().anonymous.get('/metrics');
      expect(metrics).toMatch(/^capstan_storage_tenants_at_limit 1$/m);
      expect(Number(/^capstan_storage_tenant_max_bytes (\d+)$/m.exec(metrics)?.[1])).toBeGreaterThanOrEqual(SHARE);

      for (const runId of [...started, waiting]) {
        await editor.until(runId, ({ status }) => status === 'completed');
        await host().as('owner').post(`/v1/host/sample/test/force-expire/${runId}`);
      }
      await until(
        async () => (await host().anonymous.get('/metrics')).text,
        (text) => /^capstan_storage_tenants_at_limit 0$/m.test(text),
      );
      expect((await startOne()).status).toBe(201);
    });
  },
  { storagePerTenant: SHARE },
);
