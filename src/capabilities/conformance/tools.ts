import { commitOrThrow } from '../../runtime/change.ts';
import { type Credential, credentialOf } from '../../runtime/effects/credentials.ts';
import { type CallableTool, fixedTools, type ToolCaller, type ToolSource } from '../../runtime/tools.ts';
import type { Store } from '../../store/store.ts';
import { sha256Hex } from '../../system/digest.ts';
import { countEffect } from './records.ts';

/** The tool that the side-effect node calls. */
export const PROBE_TOOL = 'conformance:probe';
/** The tool that resolves a secret. */
export const SECRET_TOOL = 'conformance:secret';

/** A secret of every tenant, for suites that ask whether secrets are resolved. */
const CANARY: Credential = {
  name: 'openwop-conformance-canary-secret',
  secret: 'canary-of-a-secret-that-only-its-digest-may-tell',
  origins: [],
  tenants: ['*'],
};

/** Harmless, and the same for every call: tools go through the same seam and the same ledger as any other call. */
const TRAITS = { transport: 'native', safetyTier: 'write', egress: 'none', replayPolicy: 'idempotent' } as const;

/**
 * The tools of conformance nodes: an effect that can be counted, and a secret that can be resolved. Neither is listed
 * in the catalogue of tools.
 */
export function conformanceTools(store: Store, credentials: readonly Credential[]): ToolSource {
  const tools = [probeTool((by) => commitOrThrow(store, [countEffect(by)])), secretTool([...credentials, CANARY])];
  return { ...fixedTools('conformance', tools), list: async () => [] };
}

/** A harmless effect that can be counted. */
export function probeTool(fire: (by: ToolCaller) => Promise<unknown>): CallableTool {
  return {
    ...TRAITS,
    name: PROBE_TOOL,
    description: 'Counts how often the effect is performed.',
    inputSchema: { type: 'object' },
    call: async (_args, by) => {
      await fire(by);
      return { effectId: by.effectId };
    },
  };
}

/** Resolves a secret of the tenant and tells its digest and its length, never the secret. */
function secretTool(credentials: readonly Credential[]): CallableTool {
  return {
    ...TRAITS,
    name: SECRET_TOOL,
    description: 'Tells the digest of a secret.',
    inputSchema: { type: 'object', required: ['secretId'], properties: { secretId: { type: 'string' } } },
    call: async ({ secretId }, { tenant }) => {
      const { secret } = credentialOf(credentials, String(secretId), tenant);
      return { secretSha256: sha256Hex(secret), secretLength: Buffer.byteLength(secret) };
    },
  };
}
