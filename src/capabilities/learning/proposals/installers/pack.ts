import type { PackManifest } from '../../../../protocol/ai/packs.ts';
import { isRefusal, refuse } from '../../../../protocol/errors.ts';
import { isObject, type JsonObject } from '../../../../protocol/format/json.ts';
import { unchanged, withResult } from '../../../../runtime/change.ts';
import type { PackFile, Packs, PackTarget } from '../../../ai/packs/door.ts';
import { type Installer, type Problem, type ProposedArtifact, problemsOf } from './installer.ts';
import type { References } from './references.ts';

/** The member that holds the contents of packs of one kind. */
type Contents = 'chains' | 'agents';

/** Installs a pack exactly as it is written and makes it current. */
export function packInstaller(packs: Packs, references: References, contents: Contents): Installer {
  const current: Installer['current'] = async ({ author, text }) => {
    const { name } = targetOf(text);
    const found = await packs.current(author.subject, name);
    return found ? `pack:${name}@${found.manifest.version}` : '';
  };

  return {
    current,

    replaced: async ({ author, text }) => (await packs.current(author.subject, targetOf(text).name))?.file,

    async check(artifact) {
      const problem = contentProblem(JSON.parse(artifact.text), contents);
      if (problem) return [problem];
      const refusal = await packs.check(packFileOf(artifact));
      if (refusal) return problemsOf(refusal);
      return references.problemsOf(artifact.author.subject, JSON.parse(artifact.text) as PackManifest);
    },

    /** The pack itself is valid, so every refusal is a conflict with what is installed. */
    async install(artifact) {
      const installed = await packs.install(artifact.author, packFileOf(artifact));
      if (isRefusal(installed)) return { ...installed, status: 409 };
      if (installed.result.isKnown) return refuse('conflict', 'This version of the pack is installed already.');
      const replaces = (await current(artifact)) || undefined;
      return withResult(installed, () => ({ undo: targetOf(artifact.text), replaces }));
    },

    async uninstall(author, undo) {
      const uninstalled = await packs.uninstall(author, undo as { name: string; version: string });
      return isRefusal(uninstalled) ? unchanged(undefined) : uninstalled;
    },
  };
}

/** A pack with other contents, or with a name that proposals may not use. */
function contentProblem(manifest: unknown, contents: Contents): Problem | undefined {
  const { name, [contents]: members }: JsonObject = isObject(manifest) ? manifest : {};
  if (!Array.isArray(members)) return { path: `/${contents}`, message: 'is missing' };
  if (typeof name !== 'string' || !name.startsWith('core.')) return undefined;
  return { path: '/name', message: 'core packs come with the protocol; name it private.…' };
}

function packFileOf({ text, proposalId }: ProposedArtifact): PackFile {
  return { file: text, origin: { source: 'proposal', proposalId } };
}

function targetOf(text: string): Required<PackTarget> & JsonObject {
  const { name, version } = JSON.parse(text) as { name: string; version: string };
  return { name, version };
}
