import { isObject, type JsonObject } from '../../protocol/format/json.ts';
import type { ModelProvider, ModelResult, ProviderCall, ProviderQuestion } from './model.ts';
import { sayLine } from './scripted-model.ts';

/** One answer of a program. */
export interface Cue {
  readonly content?: string;
  readonly stopReason?: string;
  readonly refusalText?: string;
}

interface Program {
  readonly cues: Cue[];
  /** How long the answer to the last question might be. */
  maxTokens: number | null;
}

/** Programs that are kept, the newest of them: they are gone with the process anyway. */
const PROGRAMS_MAX = 1_000;

/** Says what somebody has laid out for a node beforehand, one answer for each question. For conformance suites. */
export class ProgrammedModel implements ModelProvider {
  readonly id = 'mock';
  readonly models = ['mock-mini'];
  readonly prices = {};
  readonly isByNameOnly = true;
  readonly #programs = new Map<string, Program>();

  /** Replaces whatever was laid out for the node. */
  lay(tenant: string, nodeId: string, cues: readonly Cue[]): void {
    const key = keyOf(tenant, nodeId);
    this.#programs.delete(key);
    this.#programs.set(key, { cues: [...cues], maxTokens: null });
    const [oldest] = this.#programs.keys();
    if (this.#programs.size > PROGRAMS_MAX) this.#programs.delete(oldest!);
  }

  lastMaxTokens(tenant: string, nodeId: string): number | null {
    return this.#programs.get(keyOf(tenant, nodeId))?.maxTokens ?? null;
  }

  async answer(question: ProviderQuestion, call: ProviderCall): Promise<ModelResult> {
    const program = this.#programs.get(keyOf(call.tenant, call.nodeId));
    if (program) program.maxTokens = question.maxTokens ?? null;
    const cue = program?.cues.shift() ?? { content: JSON.stringify(exampleOf(question.outputSchema ?? {})) };
    return perform(cue, this.id, question, call);
  }
}

function keyOf(tenant: string, nodeId: string): string {
  return JSON.stringify([tenant, nodeId]);
}

function perform(cue: Cue, id: string, question: ProviderQuestion, call: ProviderCall): ModelResult {
  const { content = '', stopReason = 'end_turn', refusalText } = cue;
  if (stopReason === 'safety' || refusalText !== undefined) {
    return sayLine({ refusal: refusalText ?? 'The model would not answer.' }, id, question, call);
  }
  const isCut = stopReason === 'max_tokens' || stopReason === 'length';
  const result = sayLine({ content, finishReason: isCut ? 'length' : 'stop' }, id, question, call);
  return isCut ? { ...result, stopReason } : result;
}

/** The least that fits a simple schema. */
function exampleOf({ type, enum: values, required, properties }: JsonObject): unknown {
  if (Array.isArray(values)) return values[0];
  if (type === 'object') {
    const names = Array.isArray(required) ? (required as string[]) : [];
    const shapes = isObject(properties) ? properties : {};
    return Object.fromEntries(names.map((name) => [name, exampleOf((shapes[name] ?? {}) as JsonObject)]));
  }
  const examples: Record<string, unknown> = { string: '', number: 0, integer: 0, boolean: true, array: [] };
  return examples[String(type)] ?? null;
}
