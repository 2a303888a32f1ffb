import { type Static, Type } from 'typebox';
import type { RunError } from '../../../protocol/errors.ts';
import { isObject } from '../../../protocol/format/json.ts';
import { BadJson, parseJson } from '../../../protocol/format/parse-json.ts';
import { invalid, type NodeContext, type NodeType, type Outcome } from '../../../runtime/node-type.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { redactText } from '../../../system/redaction.ts';
import type { Sandbox } from '../../../system/sandbox.ts';

const CODE_CHARACTERS_MAX = 32_768;
const INPUTS_CHARACTERS_MAX = 1_000_000;
const RESULT_CHARACTERS_MAX = 1_000_000;
const TIMEOUT_MS = 5_000;
const MEMORY_MB = 32;
const SEED_DIGITS = 8;

const Config = Type.Object({
  code: Type.String({
    minLength: 1,
    maxLength: CODE_CHARACTERS_MAX,
    description: 'The body of a function of `inputs`; what it returns is the outputs',
  }),
  timeoutMs: Type.Optional(Type.Integer({ minimum: 1_000, maximum: 30_000, default: TIMEOUT_MS })),
  memoryMb: Type.Optional(Type.Integer({ minimum: 16, maximum: 128, default: MEMORY_MB })),
});
type Config = Static<typeof Config>;

/**
 * Runs the author's JavaScript in a sandbox. It is deterministic: its clock stands still at the start of the attempt,
 * and its random numbers come from a seed.
 */
export function javascript(sandbox: Sandbox): NodeType {
  return {
    typeId: 'vendor.capstan.code.javascript',
    description: 'Runs JavaScript in a sandbox.',
    role: 'pure',
    config: Config,
    run: async (context): Promise<Outcome> => {
      const { code, timeoutMs = TIMEOUT_MS, memoryMb = MEMORY_MB } = context.config as Config;
      const inputs = JSON.stringify(context.inputs);
      if (inputs.length > INPUTS_CHARACTERS_MAX) {
        return invalid(`The inputs have more than ${INPUTS_CHARACTERS_MAX} characters as JSON.`);
      }
      const job = {
        code,
        inputs,
        now: context.startedAt,
        seed: seedOf(context),
        memoryBytes: memoryMb * 1_048_576,
        resultCharactersMax: RESULT_CHARACTERS_MAX,
      };
      const answer = await sandbox.run(context.owner.tenant, job, timeoutMs, context.signal);
      if ('text' in answer) return outputsOf(answer.text);
      const message =
        'message' in answer ? answer.message : `The program took more than ${timeoutMs} ms of processor time.`;
      return { failed: { ...FAILURES[answer.problem], message: redactText(message) } };
    },
  };
}

const FAILURES = {
  error: { code: 'code_error', retryable: false },
  size: { code: 'result_too_large', retryable: false },
  memory: { code: 'sandbox_memory_exceeded', retryable: false },
  timeout: { code: 'sandbox_timeout', retryable: false },
  busy: { code: 'sandbox_busy', retryable: true },
} satisfies Record<string, Pick<RunError, 'code' | 'retryable'>>;

/** Derived from what a replay shares with its source run. */
function seedOf({ node, attempt, startedAt }: NodeContext): number {
  return Number.parseInt(sha256Hex(`${node.id}\0${attempt}\0${startedAt}`).slice(0, SEED_DIGITS), 16);
}

/** An object is the outputs; anything else is the output `result`. */
function outputsOf(text: string): Outcome {
  try {
    const result = parseJson(text, 'result');
    return { done: { outputs: isObject(result) ? result : { result } } };
  } catch (error) {
    if (!(error instanceof BadJson)) throw error;
    return { failed: { code: 'code_error', message: error.message, retryable: false } };
  }
}
