import type { PromptTemplate } from '../../../../protocol/ai/prompts.ts';
import { isRefusal } from '../../../../protocol/errors.ts';
import { unchanged, withResult } from '../../../../runtime/change.ts';
import type { Prompts, PromptVersion } from '../../../ai/prompts/door.ts';
import { type Installer, problemsOf } from './installer.ts';

/** Installs a prompt template as the latest version of its name. */
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

    async install(artifact) {
      const template = templateOf(artifact.text);
      const { templateId, version } = template;
      const installed = await prompts.install(artifact.author, template);
      if (isRefusal(installed)) return installed;
      const replaces = (await current(artifact)) || undefined;
      return withResult(installed, () => ({ undo: { templateId, version }, replaces }));
    },

    async uninstall(author, undo) {
      const withdrawn = await prompts.withdraw(author, undo as PromptVersion);
      return isRefusal(withdrawn) ? unchanged(undefined) : withdrawn;
    },
  };
}

function templateOf(text: string): PromptTemplate {
  return JSON.parse(text) as PromptTemplate;
}
