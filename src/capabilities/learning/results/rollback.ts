import { agentsOf, chainsOf, type PackManifest } from '../../../protocol/ai/packs.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { EffectMeasure } from '../../../protocol/learning/results.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { Packs } from '../../ai/packs/door.ts';
import type { Prompts } from '../../ai/prompts/door.ts';
import type { Draft, InstalledRow } from '../proposals/door.ts';
import { versionAfter } from '../synthesis/door.ts';

const SOURCES_MAX = 20;

/** What is installed, and what was before. */
interface RollbackNeeds {
  readonly prompts: Pick<Prompts, 'find' | 'versions'>;
  readonly packs: Pick<Packs, 'current' | 'find' | 'versions'>;
}

/**
 * The draft that takes an artifact back: what it replaced, as the next version. There is none if it replaced nothing (it
 * can be uninstalled), or if something else has taken its place since.
 */
export async function rollbackOf(
  needs: RollbackNeeds,
  owner: Subject,
  installed: InstalledRow,
  { harms, badRunIds }: { readonly harms: readonly EffectMeasure[]; readonly badRunIds: readonly string[] },
): Promise<Draft | undefined> {
  const previous = /^(?:prompt|pack):(.+)@([^@]+)$/.exec(installed.replaces ?? '');
  const [, name, version] = previous ?? [];
  if (name === undefined || version === undefined) return undefined;
  const artifact =
    installed.kind === 'prompt-template'
      ? await previousPrompt(needs, owner, installed, { templateId: name, version })
      : await previousPack(needs, owner, installed, { name, version });
  if (!artifact) return undefined;
  const runIds = badRunIds.slice(0, SOURCES_MAX);
  return {
    kind: installed.kind,
    artifact,
    title: `Roll ${name} back to ${version}`,
    rationale: [
      `Since ${installed.proposal_id} was applied, it got worse: ${harms.map(({ sentence }) => sentence).join('. ')}.`,
      `This is ${version} again, as a new version.`,
    ].join(' '),
    sourceRunIds: runIds,
    evidence: {
      key: sha256Hex(JSON.stringify(['rollback', installed.ref])),
      sources: runIds.map((runId) => ({ runId, why: 'It failed or was corrected after the change.' })),
      nearest: [],
    },
  };
}

async function previousPrompt(
  { prompts }: RollbackNeeds,
  owner: Subject,
  { text }: InstalledRow,
  target: { readonly templateId: string; readonly version: string },
): Promise<JsonObject | undefined> {
  const { version: installed } = JSON.parse(text) as { version: string };
  const current = await prompts.find(owner, { templateId: target.templateId });
  const before = await prompts.find(owner, target);
  if (!before || current?.template.version !== installed) return undefined;
  const version = versionAfter(installed, await prompts.versions(owner, target.templateId));
  return { ...before.submitted, version };
}

async function previousPack(
  { packs }: RollbackNeeds,
  owner: Subject,
  { text }: InstalledRow,
  target: { readonly name: string; readonly version: string },
): Promise<JsonObject | undefined> {
  const { version: installed } = JSON.parse(text) as PackManifest;
  const current = await packs.current(owner, target.name);
  const before = await packs.find(owner, target);
  if (!before || current?.manifest.version !== installed) return undefined;
  if (chainsOf(before.manifest).length + agentsOf(before.manifest).length === 0) return undefined;
  const version = versionAfter(installed, await packs.versions(owner, target.name));
  return { ...(JSON.parse(before.file) as JsonObject), version };
}
