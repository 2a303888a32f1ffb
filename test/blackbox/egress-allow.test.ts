import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { parseEgressRule } from '../../src/system/egress-allow.ts';
import { fixed, node, register, workflow } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { Receiver } from '../support/receiver.ts';

/** Local services are reached on purpose, and only those that the operator names. */

describe('a host whose operator permits one local service', () => {
  let service: Receiver;
  let other: Receiver;
  let host: TestHost;

  beforeAll(async () => {
    service = await Receiver.open();
    other = await Receiver.open();
    const egressAllow = [parseEgressRule(new URL(service.url).origin)!];
    host = await startTestHost('sqlite', inject('postgresUrl'), { allowLoopback: false, egressAllow });
  });
  afterAll(async () => {
    await host.stop();
    service.close();
    other.close();
  });

  const fetchFrom = async (url: string) => {
    const api = host.as('editor');
    const fetching = workflow([
      node('fetch', 'core.openwop.http.fetch', { config: { url, method: 'POST' }, inputs: { body: fixed({}) } }),
    ]);
    return api.ended(await api.run(await register(api, fetching)));
  };

  it('reaches it from an HTTP node', async () => {
    expect(await fetchFrom(service.url)).toMatchObject({ status: 'completed' });
    expect(service.arrivals).not.toEqual([]);
  });

  it('reaches nothing else, and the error names the setting', async () => {
    const { status, error } = await fetchFrom(other.url);
    expect(status).toBe('failed');
    expect(error.message).toContain('CAPSTAN_EGRESS_ALLOW');
    expect(other.arrivals).toEqual([]);
  });

  it('takes webhooks to it, and to nothing else', async () => {
    const subscribe = (url: string) => host.as('owner').post('/v1/webhooks', { url, events: ['run.completed'] });
    expect((await subscribe(service.url)).status).toBe(201);
    const refused = await subscribe(other.url);
    expect(refused.status).toBe(400);
    expect(refused.body.message).toContain('CAPSTAN_EGRESS_ALLOW');
  });
});
