import { composePrompt } from '../../src/engine/models/prompt-text.ts';
import type { PromptTemplate } from '../../src/protocol/ai/prompts.ts';

/** A prompt as it is being written. */
export type PromptDraft = Pick<PromptTemplate, 'templateId' | 'version' | 'kind' | 'text'> &
  Partial<Omit<PromptTemplate, 'meta'>>;

/** What a new prompt begins with. */
export const EMPTY_PROMPT: PromptDraft = { templateId: '', version: '1.0.0', kind: 'user', text: '' };

/** The kinds of prompts in words. */
export const KINDS: readonly (readonly [kind: PromptTemplate['kind'], words: string])[] = [
  ['user', 'user: what is asked'],
  ['system', 'system: how to answer'],
  ['few-shot', 'few-shot: examples'],
  ['schema-hint', 'schema hint'],
];

/** What the form begins with: the text as it is, to be saved as the next version. */
export function draftOf({ meta: _meta, ...saved }: PromptTemplate): PromptDraft {
  return { ...saved, version: nextVersion(saved) };
}

/** The version after this one. */
function nextVersion({ version }: Pick<PromptTemplate, 'version'>): string {
  const [, major = '1', minor = '0', patch = '0'] = /^(\d+)\.(\d+)\.(\d+)/.exec(version) ?? [];
  return `${major}.${minor}.${Number(patch) + 1}`;
}

/** The draft as the host takes it. */
export function templateOf({ name, description, ...draft }: PromptDraft): PromptTemplate {
  return { ...draft, ...(name && { name }), ...(description && { description }) };
}

/** The text with its variables filled in, or why it cannot be. */
export function filledIn(
  template: PromptDraft,
  values: Readonly<Record<string, string>>,
): { readonly text: string } | { readonly problem: string } {
  const composed = composePrompt(
    templateOf(template),
    ({ name, type }) => {
      const given = values[name] ?? '';
      if (given === '') return undefined;
      const value = type === 'string' || type === undefined ? given : parsed(given);
      return { value, shown: value, trust: 'trusted' };
    },
    // Neither hashes nor what readers may see matters here: the text goes to the model that its author chose.
    { digest: () => '', redact: (text) => text },
  );
  return 'problem' in composed ? { problem: composed.problem.message } : { text: composed.text };
}

/** Other types than text are written as JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
