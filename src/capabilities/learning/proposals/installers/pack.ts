import { isRefusal, refuse } from '../../../../protocol/errors.ts';
import { isObject, type JsonObject } from '../../../../protocol/format/json.ts';
import type { Packs } from '../../../ai/packs/door.ts';
import { type Candidate, type Installer, type Problem, problemsOf } from './installer.ts';

/** What packs of a kind have in them. */
type Contents = 'chains' | 'agents';

/** A pack is put into use as it is written; what was in use before stays under it. */
export function packInstaller(packs: Packs, contents: Contents): Installer {
  const current: Installer['current'] = async ({ author, text }) => {
    const { name } = targetOf(text);
    const found = await packs.current(author.subject, name);
    return found ? `pack:${name}@${found.manifest.version}` : '';
  };

  return {
    current,

    replaced: async ({ author, text }) => (await packs.current(author.subject, targetOf(text).name))?.file,

    async check(candidate) {
      const foreign = misplaced(JSON.parse(candidate.text), contents);
      if (foreign) return [foreign];
      const refusal = packs.check(packOf(candidate));
      return refusal ? problemsOf(refusal) : [];
    },

    /** Of a pack that fits, whatever is in the way is what there is already. */
    async install(candidate) {
      const prepared = await packs.install(candidate.author, packOf(candidate));
      if (isRefusal(prepared)) return { ...prepared, status: 409 };
      if (prepared.result.isKnown) return refuse('conflict', 'This version of the pack is in use already.');
      const replaces = (await current(candidate)) || undefined;
      return { writes: prepared.writes, undo: targetOf(candidate.text), replaces };
    },

    async uninstall(author, undo) {
      const change = await packs.uninstall(author, undo as { name: string; version: string });
      return isRefusal(change) ? [] : change.writes;
    },
  };
}

/** A pack with something else in it, or under a name that is not for what is learnt here. */
function misplaced(manifest: unknown, contents: Contents): Problem | undefined {
  const { name, [contents]: members }: JsonObject = isObject(manifest) ? manifest : {};
  if (!Array.isArray(members)) return { path: `/${contents}`, message: 'is missing' };
  if (typeof name !== 'string' || !name.startsWith('core.')) return undefined;
  return { path: '/name', message: 'core packs come with the protocol; call it private.…' };
}

function packOf({ text, proposalId }: Candidate) {
  return { file: text, origin: { source: 'proposal' as const, proposalId } };
}

function targetOf(text: string): { name: string; version: string } {
  const { name, version } = JSON.parse(text) as { name: string; version: string };
  return { name, version };
}
