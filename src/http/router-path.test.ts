import Fastify from 'fastify';
import { describe, expect, it } from 'vitest';
import { routerPath } from './router-path.ts';

describe('a path as the router writes it', () => {
  it.each([
    ['/v1/runs', '/v1/runs'],
    ['/v1/runs/{runId}', '/v1/runs/:runId'],
    ['/v1/runs/{runId}/events', '/v1/runs/:runId/events'],
    ['/v1/runs/{runId}:fork', '/v1/runs/:runId(^[^:/]+)::fork'],
    ['/v1/runs:bulk-cancel', '/v1/runs::bulk-cancel'],
    ['/v1/a/{x}/b/{y}:do-it', '/v1/a/:x/b/:y(^[^:/]+)::do-it'],
    ['/v1/workflow-chain:expand', '/v1/workflow-chain::expand'],
  ])('%s is %s', (path, written) => {
    expect(routerPath(path)).toBe(written);
  });

  it('leads where the protocol means it to', async () => {
    const app = Fastify({ routerOptions: { maxParamLength: 500 } });
    for (const path of [
      '/v1/runs',
      '/v1/runs:bulk-cancel',
      '/v1/runs/{runId}',
      '/v1/runs/{runId}:fork',
      '/v1/runs/{runId}:pause',
      '/v1/runs/{runId}/cancel',
    ]) {
      app.get(routerPath(path), async (request) => ({ path, params: request.params }));
    }
    const ask = async (url: string): Promise<unknown> => (await app.inject({ url })).json();
    expect(await ask('/v1/runs')).toMatchObject({ path: '/v1/runs' });
    expect(await ask('/v1/runs:bulk-cancel')).toMatchObject({ path: '/v1/runs:bulk-cancel' });
    expect(await ask('/v1/runs/run-1')).toEqual({ path: '/v1/runs/{runId}', params: { runId: 'run-1' } });
    expect(await ask('/v1/runs/run-1:fork')).toEqual({ path: '/v1/runs/{runId}:fork', params: { runId: 'run-1' } });
    expect(await ask('/v1/runs/run-1:pause')).toEqual({ path: '/v1/runs/{runId}:pause', params: { runId: 'run-1' } });
    expect(await ask('/v1/runs/run-1/cancel')).toEqual({ path: '/v1/runs/{runId}/cancel', params: { runId: 'run-1' } });
    expect(await ask(`/v1/runs/${'x'.repeat(128)}:fork`)).toMatchObject({ params: { runId: 'x'.repeat(128) } });
  });
});
