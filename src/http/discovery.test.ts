import { describe, expect, it } from 'vitest';
import { combine } from '../capabilities/advertising.ts';
import type { JsonObject } from '../protocol/format/json.ts';
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

  it('repeats the families for old clients where it is told to, and only then', () => {
    const families = [advertising({ a: { supported: true } })];
    expect(document(families)).not.toHaveProperty('capabilities');
    const mirrored = document(families, true);
    const { idempotency, production, a } = mirrored;
    expect(mirrored.capabilities).toEqual({ idempotency, production, a });
  });

  it('has a tag that changes with it', () => {
    const tag = (families: JsonObject[]): string => made(families).etag;
    expect(tag([])).toBe(tag([]));
    expect(tag([])).not.toBe(tag([advertising({ a: 1 })]));
    expect(tag([])).toMatch(/^"[0-9a-f]{32}"$/);
  });
});

const BACKPRESSURE = { inflightCap: 3, retryAfterSeconds: 2 };

function advertising(families: JsonObject = {}): JsonObject {
  return families;
}

function made(families: readonly JsonObject[], mirror = false) {
  return discoveryDocument(families.reduce(combine, {}), {
    implementation: { name: 'test', version: '9', vendor: 'us' },
    mirror,
    backpressure: BACKPRESSURE,
  });
}

function document(families: readonly JsonObject[], mirror = false): Record<string, unknown> {
  return JSON.parse(made(families, mirror).text) as Record<string, unknown>;
}
