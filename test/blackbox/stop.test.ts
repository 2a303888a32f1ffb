import { describe, expect, it } from 'vitest';
import { KEYS } from '../support/host.ts';
import { expectSoundLog, killableHosts } from '../support/killed.ts';
import { Stream } from '../support/stream.ts';

/** A host that stops in order loses nothing and has nothing to recover. */

const { start, follow, stop, newStore } = killableHosts();

describe('a host that is asked to stop', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'by %s ends with 0, promptly, and its runs go on after the restart',
    async (signal) => {
      const environment = await newStore('sqlite');
      const host = await start(environment);
      const api = host.as('editor');
      const runs = await Promise.all(
        Array.from({ length: 20 }, () => api.run('conformance-cancellable', { inputs: { delayMs: 700 } })),
      );
      const stream = await Stream.open(`${host.url}/v1/runs/${runs[0]}/events`, KEYS.editor.key);
      const askedAt = Date.now();
      await stop(host, signal);
      // Sooner than the steps of runs are cut.
      expect(Date.now() - askedAt).toBeLessThan(10_000);
      await stream.ended();
      expect(stream.isComplete).toBe(true);
      const next = await follow(environment);
      for (const runId of runs) {
        expect((await next.as('editor').ended(runId)).status).toBe('completed');
        const events = await next.as('editor').events(runId);
        expectSoundLog(events);
        // Nothing was lost, so nothing had to be recovered.
        expect(events.map(({ type }) => type)).not.toContain('run.resumed');
      }
    },
  );

  it('lets a step in flight finish, or takes it up again', { timeout: 60_000 }, async () => {
    const environment = await newStore('sqlite');
    const host = await start(environment);
    const tokens = Array.from({ length: 20 }, (_, index) => `t${index} `);
    const configurable = { mockProvider: { id: 'stream-text', config: { tokens, delayMsPerToken: 40 } } };
    const runId = await host.as('test').run('conformance-stream-text', { configurable });
    const stream = await Stream.open(`${host.url}/v1/runs/${runId}/events?streamMode=messages`, KEYS.test.key);
    await stream.until((frames) => frames.length >= 2);
    await stop(host);
    const next = await follow(environment);
    const snapshot = await next.as('test').ended(runId);
    expect(snapshot).toMatchObject({
      status: 'completed',
      nodeStates: { ai: { outputs: { content: tokens.join('') } } },
    });
    expectSoundLog(await next.as('test').events(runId));
  });
});
