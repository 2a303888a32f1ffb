import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';

/** Pages of other origins use the API only if the operator names their origin. */

const PAGE = 'https://app.example';

describe.each([
  { what: 'a host as it is', corsOrigins: [], permits: false },
  { what: 'a host that permits the page', corsOrigins: [PAGE], permits: true },
  { what: 'a host that permits another page', corsOrigins: ['https://other.example'], permits: false },
  { what: 'a host that permits every page', corsOrigins: ['*'], permits: true },
])('$what', ({ corsOrigins, permits }) => {
  let host: TestHost;
  beforeAll(async () => {
    host = await startTestHost('sqlite', inject('postgresUrl'), { corsOrigins });
  });
  afterAll(() => host.stop());

  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${host.url}${path}`, { ...init, headers: { origin: PAGE, ...init.headers } });
  const origin = permits ? PAGE : null;

  it('marks answers, refusals and streams alike', async () => {
    const authorization = `Bearer ${KEYS.editor.key}`;
    for (const [path, isAnswer] of [
      ['/v1/host/capstan/workflows', true],
      ['/v1/workflows/nowhere', false],
      ['/no/such/route', false],
    ] as const) {
      const answer = await ask(path, { headers: { authorization } });
      expect(answer.status < 300, path).toBe(isAnswer);
      expect(answer.headers.get('access-control-allow-origin'), path).toBe(origin);
      expect(answer.headers.get('access-control-allow-credentials')).toBeNull();
    }
    expect((await ask('/v1/runs')).headers.get('access-control-allow-origin')).toBe(origin);
  });

  it('answers what browsers ask first, without a credential', async () => {
    const answer = await ask('/v1/runs', {
      method: 'OPTIONS',
      headers: {
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization, content-type, idempotency-key',
      },
    });
    expect(answer.status === 204).toBe(permits);
    expect(answer.headers.get('access-control-allow-headers')).toBe(
      permits ? 'authorization, content-type, idempotency-key' : null,
    );
  });
});
