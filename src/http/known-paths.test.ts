import { describe, expect, it } from 'vitest';
import { KnownPaths } from './known-paths.ts';

const api = (method: string, path: string) => ({ method, path, isPublic: false });
const paths = new KnownPaths([
  api('POST', '/v1/runs'),
  api('POST', '/v1/runs:bulk-cancel'),
  api('GET', '/v1/runs/{runId}'),
  api('DELETE', '/v1/runs/{runId}'),
  api('POST', '/v1/runs/{runId}:fork'),
  api('GET', '/v1/runs/{runId}/events'),
  { method: 'GET', path: '/console/*', isPublic: true },
  { method: 'GET', path: '/schemas/workflow.json', isPublic: true },
]);

describe('known paths', () => {
  it.each([
    ['/v1/runs', '/v1/runs'],
    ['/v1/runs?limit=1', '/v1/runs'],
    ['/v1/runs:bulk-cancel', '/v1/runs:bulk-cancel'],
    ['/v1/runs/run-1', '/v1/runs/{runId}'],
    ['/v1/runs/run-1:fork', '/v1/runs/{runId}:fork'],
    ['/v1/runs/run-1/events', '/v1/runs/{runId}/events'],
    ['/console/runs/run-1', '/console/*'],
    ['/schemas/workflow.json', '/schemas/workflow.json'],
  ])('lead %s to %s', (url, path) => {
    expect(paths.find(url)?.path).toBe(path);
  });

  it.each(['/', '/v1', '/v1/runs/', '/v1/runs/run-1/nothing', '/v2/runs', '/schemas/workflowXjson', '/v1/run'])(
    'do not include %s',
    (url) => {
      expect(paths.find(url)).toBeUndefined();
    },
  );

  it('have all their methods', () => {
    expect(paths.find('/v1/runs/run-1')).toEqual({
      path: '/v1/runs/{runId}',
      methods: ['GET', 'DELETE'],
      isPublic: false,
    });
    expect(paths.find('/console/')?.isPublic).toBe(true);
  });

  it('are shadowed where a less specific path has another method', () => {
    expect(paths.shadowed.map(({ known, methods }) => [known.path, methods])).toEqual([
      ['/v1/runs/{runId}:fork', ['GET', 'DELETE']],
    ]);
  });
});
