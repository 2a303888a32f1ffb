import { combine } from '../capabilities/advertising.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import { PROTOCOL_VERSION } from '../protocol/running/runs.ts';
import { sha256Hex } from '../system/digest.ts';
import { IDEMPOTENCY_RETENTION_MS } from './idempotency.ts';

/** How many requests are answered at once, and the `Retry-After` of the others. The block is closed: shares are in the docs. */
interface Backpressure {
  readonly inflightCap: number;
  readonly retryAfterSeconds: number;
}

/** What the discovery document says besides what capabilities advertise. */
interface DiscoveryOptions {
  readonly implementation: { readonly name: string; readonly version: string; readonly vendor: string };
  /** Repeats all families under `capabilities`, for clients that look only there. */
  readonly mirror: boolean;
  readonly backpressure: Backpressure;
}

/** The discovery document as it is served. */
export interface DiscoveryDocument {
  readonly text: string;
  readonly etag: string;
}

/** Builds the document from what the mounted capabilities advertise: what is not served is not in it. */
export function discoveryDocument(
  advertised: JsonObject,
  { implementation, mirror, backpressure }: DiscoveryOptions,
): DiscoveryDocument {
  const families = combine(
    {
      idempotency: {
        supported: true,
        layer1RetentionSeconds: IDEMPOTENCY_RETENTION_MS / 1_000,
        crossRegion: 'single-region',
      },
      production: { backpressure: { supported: true, ...backpressure } },
    },
    advertised,
  );
  const document = {
    protocolVersion: PROTOCOL_VERSION,
    protocolVersions: [PROTOCOL_VERSION],
    implementation,
    ...families,
    ...(mirror ? { capabilities: families } : {}),
  };
  const text = JSON.stringify(document);
  return { text, etag: `"${sha256Hex(text).slice(0, 32)}"` };
}
