import type { Allowance } from '../../engine/models/budget.ts';
import { NodeFailure } from '../node-type.ts';
import { type ModelMessage, OverBudget, type Price, type ProviderQuestion } from './model.ts';

/** A rough estimate: the exact count is known only after the call. */
const CHARACTERS_PER_TOKEN = 4;
const PRICED_TOKENS = 1_000_000;

/** Estimates the tokens of a text. */
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN);
}

/** Estimates the tokens of a conversation. */
export function inputEstimate(messages: readonly ModelMessage[]): number {
  return Math.max(1, estimateTokens(messages.map(({ content }) => content).join('\n')));
}

/** The cost of a call in dollars. */
export function costOf(price: Price, inputTokens: number, outputTokens: number): number {
  return (inputTokens * price.input + outputTokens * price.output) / PRICED_TOKENS;
}

/** Limits the answer's tokens to the run's budget. Throws OverBudget if not even one token fits. */
export function afford(
  question: ProviderQuestion,
  allowance: Allowance | undefined,
  price: Price | undefined,
): ProviderQuestion {
  if (!allowance) return question;
  checkModel(question.model, allowance);
  const input = inputEstimate(question.messages);
  const outputs = [question.maxTokens ?? Number.POSITIVE_INFINITY];
  if (allowance.tokens !== undefined) outputs.push(outputWithinTokens(allowance.tokens, input));
  if (allowance.costUsd !== undefined) outputs.push(outputWithinCost(allowance.costUsd, input, question.model, price));
  const maxTokens = Math.min(...outputs);
  return Number.isFinite(maxTokens) ? { ...question, maxTokens } : question;
}

function outputWithinTokens(left: number, input: number): number {
  if (input + 1 > left) throw new OverBudget('tokens', input + 1);
  return left - input;
}

function outputWithinCost(left: number, input: number, model: string, price: Price | undefined): number {
  if (!price)
    throw denied(model, 'has no price, and the run has a limit on cost. Set one under prices in CAPSTAN_MODELS');
  const need = costOf(price, input, 1);
  if (need > left) throw new OverBudget('cost', need);
  return price.output === 0
    ? Number.POSITIVE_INFINITY
    : Math.floor((left - costOf(price, input, 0)) / costOf(price, 0, 1));
}

function checkModel(model: string, { modelAllow, modelDeny = [] }: Allowance): void {
  const isNamed = (patterns: readonly string[]): boolean => patterns.some((pattern) => matches(pattern, model));
  if (isNamed(modelDeny)) throw denied(model, 'is denied by the budget of the run');
  if (modelAllow && !isNamed(modelAllow)) throw denied(model, 'is not among those that the budget of the run allows');
}

/** Whether a text matches a pattern in which `*` stands for any characters. Takes linear time. */
export function matches(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return pattern === text;
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

function denied(model: string, why: string): NodeFailure {
  const message = `The model ${JSON.stringify(model)} ${why}.`;
  return new NodeFailure({ code: 'budget_model_denied', message, details: { model }, retryable: false });
}
