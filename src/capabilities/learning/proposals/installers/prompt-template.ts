import type { PromptTemplate } from '../../../../protocol/ai/prompts.ts';
import { isRefusal } from '../../../../protocol/errors.ts';
import { bodyOf, type PromptService } from '../../../ai/prompts/service.ts';
import { type Installer, problemsOf } from './installer.ts';

/** A template goes into the library, as the latest version of its name. */
export function promptInstaller(prompts: PromptService): Installer {
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
      return found && JSON.stringify(bodyOf(found.template));
    },

    async check({ text }) {
      const refusal = prompts.check(JSON.parse(text));
      return refusal ? problemsOf(refusal) : [];
    },

    async install(candidate) {
      const template = templateOf(candidate.text);
      const { templateId, version } = template;
      const prepared = await prompts.prepare(candidate.author, template);
      if (isRefusal(prepared)) return prepared;
      const replaces = (await current(candidate)) || undefined;
      return { writes: prepared.writes, undo: { templateId, version }, replaces };
    },

    uninstall: (author, undo) => prompts.withdrawal(author, undo as { templateId: string; version: string }),
  };
}

function templateOf(text: string): PromptTemplate {
  return JSON.parse(text) as PromptTemplate;
}
