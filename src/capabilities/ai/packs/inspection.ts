import type { Agent } from '../../../protocol/ai/agents.ts';
import type { PackManifest } from '../../../protocol/ai/packs.ts';
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import { schemaProblems } from '../../../runtime/validation/definition-problems.ts';
import type { SchemaValidator } from '../../../runtime/validation/schema-validator.ts';
import { agentSchemas, digestOf, refersToFiles, resolveAgents } from './agents.ts';
import type { PackFile } from './door.ts';
import { checkSignature, integrityOf, parseManifest } from './pack-file.ts';
import { chainSchemas, checkManifest, invalid, type Misfit } from './rules.ts';

/** A pack that can be installed. */
export interface InspectedPack extends Required<Pick<PackFile, 'file' | 'integrity' | 'origin'>> {
  readonly manifest: PackManifest;
  readonly agents: readonly Agent[];
  /** Tells whether two installations have the same content. */
  readonly digest: string;
}

/** Checks the signature first, then the content. */
export async function inspectPack(pack: PackFile, schemas: SchemaValidator): Promise<InspectedPack | Refusal> {
  const { file, files = () => undefined, integrity = integrityOf(file), asked, origin, isPinned } = pack;
  const checked = origin.signature && checkSignature(pack, origin.signature);
  if (isRefusal(checked)) return checked;
  const parsed = parseManifest(file);
  if (isRefusal(parsed)) return parsed;
  const refusal = checkManifest(parsed.manifest);
  if (refusal) return refusal;
  const manifest = parsed.manifest as PackManifest;
  const { name, version } = manifest;
  if (asked && (asked.name !== name || asked.version !== version)) {
    return refuse('manifest_mismatch', 'pack.json names a different pack or version than requested.', {
      name,
      version,
    });
  }
  const resolved = 'agents' in manifest ? resolveAgents(manifest, files) : { agents: [] };
  if ('misfits' in resolved) return invalid(resolved.misfits)!;
  const { agents } = resolved;
  if (checked?.covers === 'manifest' && !isPinned && refersToFiles(agents)) return FILES_UNSIGNED;
  const unusable = invalid(await schemaMisfits(manifest, agents, schemas));
  if (unusable) return unusable;
  const digest = digestOf(file, agents);
  const known = checked ? { ...origin, signature: checked.signature } : origin;
  return { file, integrity, origin: known, manifest, agents, digest };
}

const FILES_UNSIGNED = refuse(
  'pack_signature_invalid',
  'The signature covers only pack.json, but agents of the pack are in other files. Sign every file, or give the integrity of the archive.',
  { reason: 'files' },
);

async function schemaMisfits(
  manifest: PackManifest,
  agents: readonly Agent[],
  schemas: SchemaValidator,
): Promise<Misfit[]> {
  const ofChains = await schemaProblems(chainSchemas(manifest), schemas);
  const ofAgents = await schemaProblems(agentSchemas(agents), schemas);
  return [
    ...ofChains.map(({ path, message }) => ({ path, message: `is not a JSON Schema: ${message}` })),
    ...ofAgents.map(({ path, message }) => ({ path, message: `does not name a JSON Schema: ${message}` })),
  ];
}
