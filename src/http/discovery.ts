import { combine } from '../capabilities/advertising.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import { sha256Hex } from '../system/digest.ts';
import { IDEMPOTENCY_RETENTION_MS } from './idempotency.ts';

export const PROTOCOL_VERSION = '1.0';

export interface DiscoveryOptions {
  readonly implementation: { readonly name: string; readonly version: string; readonly vendor: string };
  /** Repeats all families under `capabilities`, for clients that look only there. */
  readonly mirror: boolean;
  /** How many requests are answered at once, and when the others may come back. */
  readonly backpressure: { readonly inflightCap: number; readonly retryAfterSeconds: number };
}

export interface DiscoveryDocument {
  readonly text: string;
  readonly etag: string;
}

/** The document is what the mounted capabilities say of themselves: what is not served cannot be advertised. */
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
