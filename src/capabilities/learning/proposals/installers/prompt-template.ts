import type { PromptTemplate } from '../../../../protocol/ai/prompts.ts';
import { isRefusal } from '../../../../protocol/errors.ts';
import type { Prompts } from '../../../ai/prompts/door.ts';
import { type Installer, problemsOf } from './installer.ts';

/** A template goes into the library, as the latest version of its name. */
export function promptInstaller(prompts: Prompts): Installer {
  const current: Installer['current'] = async ({ author, text }) => {
    const { templateId } = templateOf(text);
    const found = await prompts.find(author.subject, { templateId });
    return found ? `prompt:${templateId}@${found.template.version}` : '';
  };

  return {
    current,

    async replaced({ author, text }) {
      const { templateId } = templateOf(text);
      const found = await prompts.find(author.subject, { templateId });
      return found && JSON.stringify(found.submitted);
    },

    async check({ text }) {
      const refusal = prompts.check(JSON.parse(text));
      return refusal ? problemsOf(refusal) : [];
    },

    async install(candidate) {
      const template = templateOf(candidate.text);
      const { templateId, version } = template;
      const prepared = await prompts.install(candidate.author, template);
      if (isRefusal(prepared)) return prepared;
      const replaces = (await current(candidate)) || undefined;
      return { writes: prepared.writes, undo: { templateId, version }, replaces };
    },

    async uninstall(author, undo) {
      const change = await prompts.withdraw(author, undo as { templateId: string; version: string });
      return isRefusal(change) ? [] : change.writes;
    },
  };
}

function templateOf(text: string): PromptTemplate {
  return JSON.parse(text) as PromptTemplate;
}
