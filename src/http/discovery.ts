import type { Capability, CapabilitySettings } from '../capabilities/capability.ts';
import { isObject, type JsonObject, valueAt } from '../protocol/format/json.ts';
import { sha256Hex } from '../system/digest.ts';
import { IDEMPOTENCY_RETENTION_MS } from './idempotency.ts';

export const PROTOCOL_VERSION = '1.0';

export interface DiscoveryOptions {
  readonly implementation: { readonly name: string; readonly version: string; readonly vendor: string };
  /** Repeats all families under `capabilities`, for clients that look only there. */
  readonly mirror: boolean;
  /** How many requests are answered at once, and when the others may come back. */
  readonly backpressure: { readonly inflightCap: number; readonly retryAfterSeconds: number };
  readonly serviceOf?: (capability: Capability) => unknown;
}

export interface DiscoveryDocument {
  readonly text: string;
  readonly etag: string;
}

/** The document is what the mounted capabilities say of themselves: what is not served cannot be advertised. */
export function discoveryDocument(
  capabilities: readonly Capability[],
  settings: CapabilitySettings,
  { implementation, mirror, backpressure, serviceOf = () => undefined }: DiscoveryOptions,
): DiscoveryDocument {
  const families = merge(
    {
      idempotency: {
        supported: true,
        layer1RetentionSeconds: IDEMPOTENCY_RETENTION_MS / 1_000,
        crossRegion: 'single-region',
      },
      production: { backpressure: { supported: true, ...backpressure } },
    },
    familiesOf(capabilities, settings, serviceOf),
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

/** What the mounted capabilities say of themselves. */
export function familiesOf(
  capabilities: readonly Capability[],
  settings: CapabilitySettings,
  serviceOf: (capability: Capability) => unknown,
): JsonObject {
  return capabilities
    .map((capability) => capability.advertise?.(settings, serviceOf(capability)) ?? {})
    .reduce<JsonObject>(merge, {});
}

/** Whether something that packs call `aiProviders`, `host.kvStorage` or `agents.manifestRuntime` is here. */
export function isAdvertised(families: JsonObject, capability: string): boolean {
  const value = valueAt(families, capability.replace(/^(host|openwop)\./, ''));
  return isObject(value) ? value.supported !== false : Array.isArray(value) ? value.length > 0 : Boolean(value);
}

/** Families that several capabilities have a say in are put together member by member, lists one after the other. */
function merge(left: JsonObject, right: JsonObject): JsonObject {
  const merged = { ...left };
  for (const [key, value] of Object.entries(right)) merged[key] = together(merged[key], value);
  return merged;
}

function together(before: unknown, value: unknown): unknown {
  if (Array.isArray(before) && Array.isArray(value)) return [...new Set([...before, ...value])];
  return isObject(before) && isObject(value) ? merge(before, value) : value;
}
