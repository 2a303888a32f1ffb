import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { defineCapability, door } from '../src/capabilities/capability.ts';
import { BadConfig, readConfig } from '../src/config.ts';
import { type RunningHost, startHost } from '../src/host.ts';
import { realClock, realIds } from '../src/system/real.ts';
import { realLog } from '../src/system/real-log.ts';
import { freshFolder } from './support/database.ts';
import { until } from './support/until.ts';
import { postcards } from './toy-capability/index.ts';

/**
 * Goal: adding a capability takes a folder and one line, its settings included. Method: the toy in the folder beside
 * this file has a route, a table, a setting and a kind of work item; the one line is the list below.
 */
const extra = [postcards];
interface Card {
  readonly id: string;
  readonly stamp: string | null;
}

const KEY = 'a-key-of-the-owner';
const API_KEYS = JSON.stringify([{ key: KEY, tenant: 'alpha', principal: 'ada', role: 'owner' }]);

describe('a capability of one folder and one line', () => {
  const folder = freshFolder();
  let host: RunningHost;

  beforeAll(async () => {
    const flags = { port: '0', log: 'silent', data: folder.path, apiKeys: API_KEYS };
    const config = readConfig(flags, { CAPSTAN_TOY_STAMP: 'shilling' }, extra);
    host = await startHost(config, { clock: realClock, ids: realIds(), log: await realLog('silent', false) }, extra);
  });

  afterAll(async () => {
    await host.stop();
    folder.remove();
  });

  it('serves its routes from its table, and its work items are handled', async () => {
    const written = await call<Card>('POST', { text: 'Greetings from the capstan' });
    expect(written).toMatchObject({ text: 'Greetings from the capstan', stamp: null });
    const franked = await until(
      () => call<Card[]>('GET'),
      (cards) => cards[0]!.stamp !== null,
    );
    expect(franked).toEqual([{ ...written, stamp: 'shilling' }]);
  });

  it('is in discovery and in the API document, and takes idempotency keys like any other', async () => {
    const discovery = await read<{ toyPostcards: object }>('/.well-known/openwop');
    expect(discovery.toyPostcards).toEqual({ supported: true, stamp: 'shilling' });
    const document = await read<{ paths: Record<string, object> }>('/v1/openapi.json');
    expect(Object.keys(document.paths['/v1/host/capstan/postcards']!)).toEqual(['post', 'get']);
    const headers = { 'Idempotency-Key': 'only-once' };
    const [first, again] = [
      await call('POST', { text: 'once' }, headers),
      await call('POST', { text: 'once' }, headers),
    ];
    expect(again).toEqual(first);
  });

  it('has its settings checked with all others', () => {
    const bad = () => readConfig({}, { CAPSTAN_TOY_STAMP: 'no good!', PORT: 'x' }, extra);
    expect(bad).toThrow(BadConfig);
    expect(bad).toThrow(/PORT[\s\S]*CAPSTAN_TOY_STAMP/);
  });

  it('does not compile with a need that the host cannot meet, or without its settings', async () => {
    const Pigeons = door<{ fly(): void }>()('pigeons');
    const lost = defineCapability({ name: 'lost', needs: [Pigeons], build: () => ({}) });
    const system = { clock: realClock, ids: realIds(), log: await realLog('silent', false) };
    const config = readConfig({ log: 'silent', port: '0', data: freshFolder().path }, {});
    // @ts-expect-error No capability provides pigeons.
    const unmet = () => startHost(config, system, [lost]);
    await expect(unmet()).rejects.toThrow('the capability lost needs pigeons, which no mounted capability provides');
    // @ts-expect-error The setting `stamp` was not read.
    const unread = () => startHost(config, system, extra);
    expect(unread).toBeTypeOf('function');
  });

  async function call<T>(method: string, body?: object, headers: Record<string, string> = {}): Promise<T> {
    const response = await fetch(`${host.url}/v1/host/capstan/postcards`, {
      method,
      headers: { Authorization: `Bearer ${KEY}`, ...(body ? { 'Content-Type': 'application/json' } : {}), ...headers },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    return (await response.json()) as T;
  }

  async function read<T>(path: string): Promise<T> {
    return (await (await fetch(`${host.url}${path}`)).json()) as T;
  }
});
