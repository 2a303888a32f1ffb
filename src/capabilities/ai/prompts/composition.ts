import { type Binding, composePrompt, extract, secretMarker } from '../../../engine/models/prompt-text.ts';
import type { PromptTemplate } from '../../../protocol/ai/prompts.ts';
import { own } from '../../../protocol/format/json.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { redactText, redactValue } from '../../../system/redaction.ts';
import type { Filling } from './door.ts';

/** Fills a template for a preview. Secrets appear by their names only, whatever value the caller gave. */
export function compose(
  template: PromptTemplate,
  { variables, overrides = {}, trustOf }: Filling,
): ReturnType<typeof composePrompt> {
  const [given, overriding] = [redactValue(variables), redactValue(overrides)];
  return composePrompt(
    template,
    (variable) => {
      const override = own(overriding, variable.name);
      const value = override ?? own(given, variable.name);
      if (variable.source === 'secret') return trusted(secretMarker(secretIdOf(value) ?? variable.name));
      if (override !== undefined) return trusted(override);
      const part = extract(variable, value);
      return { value: part, shown: part, trust: trustOf(variable) };
    },
    { digest: sha256Hex, redact: redactText },
  );
}

function trusted(value: unknown): Binding {
  return { value, shown: value, trust: 'trusted' };
}

function secretIdOf(given: unknown): string | undefined {
  return typeof given === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(given) ? given : undefined;
}
