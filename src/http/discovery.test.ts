import { describe, expect, it } from 'vitest';
import type { Capability, CapabilitySettings } from '../capabilities/capability.ts';
import { discoveryDocument } from './discovery.ts';

describe('the discovery document', () => {
  it('says which protocol is served, and by what', () => {
    expect(document([])).toMatchObject({
      protocolVersion: '1.0',
      protocolVersions: ['1.0'],
      implementation: { name: 'test', version: '9', vendor: 'us' },
      idempotency: { supported: true, layer1RetentionSeconds: 86_400 },
      production: { backpressure: { supported: true, inflightCap: 3, retryAfterSeconds: 2 } },
    });
  });

  it('is what the mounted capabilities say of themselves', () => {
    const families = [advertising({ a: { supported: true } }), advertising({ b: [1] }), advertising(undefined)];
    expect(document(families)).toMatchObject({ a: { supported: true }, b: [1] });
    expect(document([])).not.toHaveProperty('a');
  });

  it('puts together what several say of one family, member by member and lists without doubles', () => {
    const families = [
      advertising({ runs: { pauseResume: true, deep: { x: 1 } }, list: [1, 2] }),
      advertising({ runs: { bulkCancel: true, deep: { y: 2 } }, list: [2, 3] }),
    ];
    expect(document(families)).toMatchObject({
      runs: { pauseResume: true, bulkCancel: true, deep: { x: 1, y: 2 } },
      list: [1, 2, 3],
    });
  });

  it('does not change what a capability said', () => {
    const said = { runs: { a: 1 } };
    document([advertising(said), advertising({ runs: { b: 2 } })]);
    expect(said).toEqual({ runs: { a: 1 } });
  });

  it('knows the settings of the host', () => {
    const capability: Capability = {
      name: 'x',
      service: () => undefined,
      advertise: ({ limits }) => ({ limits: { maxNodeExecutions: limits.maxNodeExecutions } }),
    };
    expect(document([capability])).toMatchObject({ limits: { maxNodeExecutions: 7 } });
  });

  it('knows what a capability came to know while it was prepared', () => {
    const capability: Capability<'x', { key: string }> = {
      name: 'x',
      service: () => ({ key: 'made at the start' }),
      advertise: (_settings, { key }) => ({ x: { key } }),
    };
    const { text } = discoveryDocument([capability], SETTINGS, {
      implementation: { name: 'test', version: '9', vendor: 'us' },
      mirror: false,
      backpressure: BACKPRESSURE,
      serviceOf: () => ({ key: 'made at the start' }),
    });
    expect(JSON.parse(text)).toMatchObject({ x: { key: 'made at the start' } });
  });

  it('repeats the families for old clients where it is told to, and only then', () => {
    const families = [advertising({ a: { supported: true } })];
    expect(document(families)).not.toHaveProperty('capabilities');
    const mirrored = document(families, true);
    const { idempotency, production, a } = mirrored;
    expect(mirrored.capabilities).toEqual({ idempotency, production, a });
  });

  it('has a tag that changes with it', () => {
    const tag = (families: Capability[]): string => made(families).etag;
    expect(tag([])).toBe(tag([]));
    expect(tag([])).not.toBe(tag([advertising({ a: 1 })]));
    expect(tag([])).toMatch(/^"[0-9a-f]{32}"$/);
  });
});

const SETTINGS = {
  conformance: false,
  limits: { maxNodeExecutions: 7, maxRunDurationMs: 1, maxRequestBodyBytes: 1 },
  configuredKeys: [],
} as unknown as CapabilitySettings;

const BACKPRESSURE = { inflightCap: 3, retryAfterSeconds: 2 };

function advertising(families: Record<string, unknown> | undefined): Capability {
  return { name: 'x', service: () => undefined, ...(families ? { advertise: () => families } : {}) };
}

function made(families: readonly Capability[], mirror = false) {
  return discoveryDocument(families, SETTINGS, {
    implementation: { name: 'test', version: '9', vendor: 'us' },
    mirror,
    backpressure: BACKPRESSURE,
  });
}

function document(families: readonly Capability[], mirror = false): Record<string, unknown> {
  return JSON.parse(made(families, mirror).text) as Record<string, unknown>;
}
