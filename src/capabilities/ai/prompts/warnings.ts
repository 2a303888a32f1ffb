import { PROMPT_KINDS, parsePromptRef, promptRefText } from '../../../protocol/ai/prompts.ts';
import { promptRefsOf } from '../../../runtime/prompts.ts';
import { nodeWarnings, type WorkflowCheck } from '../../running/workflows/door.ts';
import type { Prompts } from './door.ts';

/** Prompts that nodes refer to and that no library of the author has; they may be added later. */
export function unknownPrompts(prompts: Pick<Prompts, 'find'>): WorkflowCheck {
  return (user, definition) =>
    nodeWarnings(definition, async ({ config }) => {
      const refs = PROMPT_KINDS.flatMap((kind) => promptRefsOf(config, kind)).flatMap(
        (ref) => parsePromptRef(ref) ?? [],
      );
      const found = await Promise.all(refs.map((target) => prompts.find(user, target)));
      return refs
        .filter((_target, index) => found[index] === undefined)
        .map((target) => ({
          path: '.config',
          message: `There is no prompt ${JSON.stringify(promptRefText(target))} yet. Add it before the first run.`,
        }));
    });
}
