import { Type } from 'typebox';
import type { NodeType } from '../../../runtime/node-type.ts';
import { composePrompts, PROMPT_KEYS, promptRefProblems } from '../../../runtime/prompts.ts';
import { sha256Hex } from '../../../system/digest.ts';

/** Outputs a digest of its prompts, so that a suite can tell which ones it got. */
export const mockAi: NodeType = {
  typeId: 'local.sample.demo.mock-ai',
  description: 'Outputs a digest of its prompts.',
  role: 'side-effect',
  config: Type.Object(PROMPT_KEYS),
  check: promptRefProblems,
  async run(context) {
    const prompts = await composePrompts(context);
    const heard =
      prompts.length > 0 ? prompts.map(({ shown }) => shown).join('\n\n') : context.masked().variables.prompt;
    return { done: { outputs: { completion: `I heard ${sha256Hex(String(heard ?? ''))}.` } } };
  },
};
