import { isObject, type JsonObject } from '../../protocol/format/json.ts';
import type {
  ModelProvider,
  ModelResult,
  PredictedResponse,
  ProviderCall,
  ProviderQuestion,
} from '../../runtime/effects/model.ts';
import { answerWith } from '../../runtime/effects/scripted-model.ts';

/** One answer of a program. */
export interface ProgrammedAnswer {
  readonly content?: string;
  readonly stopReason?: string;
  readonly refusalText?: string;
  readonly toolCalls?: { readonly id: string; readonly name: string; readonly arguments: JsonObject }[];
}

interface Program {
  readonly answers: ProgrammedAnswer[];
  /** The token limit of the last question. */
  maxTokens: number | null;
}

/** The newest programs are kept, in memory only. */
const PROGRAMS_MAX = 1_000;

/** The provider `mock`: answers the questions of a node with a program that a suite has set, one answer each. */
export class ProgrammedModel implements ModelProvider {
  readonly id = 'mock';
  readonly models = ['mock-mini'];
  readonly prices = {};
  readonly isByNameOnly = true;
  readonly #programs = new Map<string, Program>();

  /** Sets the answers for a node, instead of those that it had. */
  program(tenant: string, nodeId: string, answers: readonly ProgrammedAnswer[]): void {
    const key = keyOf(tenant, nodeId);
    this.#programs.delete(key);
    this.#programs.set(key, { answers: [...answers], maxTokens: null });
    const [oldest] = this.#programs.keys();
    if (this.#programs.size > PROGRAMS_MAX) this.#programs.delete(oldest!);
  }

  /** The token limit of the last question of a node; null if it had none or was not asked. */
  lastMaxTokens(tenant: string, nodeId: string): number | null {
    return this.#programs.get(keyOf(tenant, nodeId))?.maxTokens ?? null;
  }

  /** What the next answer of the program is; nothing without one. */
  predictResponse(tenant: string, nodeId: string): PredictedResponse | undefined {
    const next = this.#programs.get(keyOf(tenant, nodeId))?.answers[0];
    return next && (isRefusal(next) ? 'refusal' : 'valid');
  }

  async answer(question: ProviderQuestion, call: ProviderCall): Promise<ModelResult> {
    const program = this.#programs.get(keyOf(call.tenant, call.nodeId));
    if (program) program.maxTokens = question.maxTokens ?? null;
    const answer = program?.answers.shift() ?? { content: JSON.stringify(exampleOf(question.outputSchema ?? {})) };
    return answerAs(answer, this.id, question, call);
  }
}

function keyOf(tenant: string, nodeId: string): string {
  return JSON.stringify([tenant, nodeId]);
}

function isRefusal({ stopReason, refusalText }: Pick<ProgrammedAnswer, 'stopReason' | 'refusalText'>): boolean {
  return stopReason === 'safety' || refusalText !== undefined;
}

function answerAs(
  { content = '', stopReason = 'end_turn', refusalText, toolCalls }: ProgrammedAnswer,
  id: string,
  question: ProviderQuestion,
  call: ProviderCall,
): ModelResult {
  if (isRefusal({ stopReason, ...(refusalText === undefined ? {} : { refusalText }) })) {
    return answerWith({ refusal: refusalText ?? 'The model refused to answer.' }, id, question, call);
  }
  if (toolCalls) return answerWith({ content, toolCalls }, id, question, call);
  const isTruncated = stopReason === 'max_tokens' || stopReason === 'length';
  const result = answerWith({ content, finishReason: isTruncated ? 'length' : 'stop' }, id, question, call);
  return isTruncated ? { ...result, stopReason } : result;
}

/** The smallest value that matches a simple schema. */
export function exampleOf({ type, enum: values, required, properties, oneOf }: JsonObject): unknown {
  if (Array.isArray(values)) return values[0];
  if (Array.isArray(oneOf)) return exampleOf((oneOf as JsonObject[])[0] ?? {});
  if (type === 'object') {
    const names = Array.isArray(required) ? (required as string[]) : [];
    const shapes = isObject(properties) ? properties : {};
    return Object.fromEntries(names.map((name) => [name, exampleOf((shapes[name] ?? {}) as JsonObject)]));
  }
  const examples: Record<string, unknown> = { string: '', number: 0, integer: 0, boolean: true, array: [] };
  return examples[String(type)] ?? null;
}
