import { expect, it } from 'vitest';
import { node, register, variable, workflow } from '../support/definitions.ts';
import { onOneStore } from '../support/stores.ts';

onOneStore(
  'the watchdog',
  (host) => {
    it('names the node type that kept the event loop from turning, and no tenant, workflow or run', async () => {
      const api = host().as('editor');
      const sort = node('sort', 'core.flow.sort', {
        config: { keys: [{ path: '', compare: 'natural' }] },
        inputs: { array: variable('array') },
      });
      const id = await register(api, workflow([sort]));
      const array = Array.from({ length: 50_000 }, (_, index) => `item ${(index * 7_919) % 50_000}`);
      const run = await api.ended(await api.run(id, { inputs: { array } }));
      expect(run).toMatchObject({ status: 'completed' });
      const { text } = await host().anonymous.get('/metrics');
      const blocked = text.split('\n').filter((line) => line.startsWith('capstan_event_loop_blocked_seconds_count'));
      expect(blocked.join('\n')).toContain('operation="node core.flow.sort"');
      expect(blocked.join('\n')).not.toMatch(new RegExp(`alpha|${id}|${run.runId}`));
    });
  },
  { blockedMs: 10 },
);
