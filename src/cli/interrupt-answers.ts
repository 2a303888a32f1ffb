import { defined, isObject, type JsonObject } from '../protocol/format/json.ts';
import { UsageError } from './exit.ts';
import type { Terminal } from './terminal.ts';
import { sanitize } from './text.ts';
import { jsonOrText } from './values.ts';

/** The part of an open interrupt that decides which answers are valid. */
export interface InterruptRequest {
  readonly kind: string;
  readonly data: JsonObject;
}

/** Builds the resume value for approving or rejecting: governance gates and approvals use different fields. */
export function approvalAnswer(
  { kind, data }: InterruptRequest,
  isApproved: boolean,
  { reason, artifactHash = data.artifactHash }: { readonly reason?: string; readonly artifactHash?: unknown } = {},
): JsonObject {
  const why = defined({ reason });
  if (typeof data.gateId === 'string')
    return { decision: isApproved ? 'granted' : 'rejected', ...defined({ artifactHash }), ...why };
  if (kind === 'approval' || kind === 'low-confidence') return { action: isApproved ? 'accept' : 'reject', ...why };
  throw new UsageError(`This interrupt is a ${kind}, not an approval. Use \`capstan approvals answer\`.`);
}

interface Question {
  readonly id: string;
  readonly question: string;
}

function questionsOf({ data }: InterruptRequest): readonly Question[] {
  return Array.isArray(data.questions) ? data.questions : [];
}

/** Checks `--answer` values against the question ids and builds the resume value. */
export function answersFromFlags(asked: InterruptRequest, answers: JsonObject): JsonObject {
  const questions = questionsOf(asked);
  const unknown = Object.keys(answers).find((id) => !questions.some((question) => question.id === id));
  if (unknown !== undefined) {
    const ids = questions.map(({ id }) => id).join(', ') || 'none; use --value instead';
    throw new UsageError(`Unknown question ${sanitize(unknown)}. The questions are: ${sanitize(ids)}.`);
  }
  return { answers };
}

/** Asks the user each question of an interrupt and builds the resume value. */
export async function promptForAnswers(terminal: Terminal, asked: InterruptRequest): Promise<JsonObject | unknown> {
  const questions = questionsOf(asked);
  if (questions.length === 0) return jsonOrText(await terminal.ask('Your answer (JSON or text): '));
  const answers: JsonObject = {};
  for (const { id, question } of questions) answers[id] = jsonOrText(await terminal.ask(`${sanitize(question)} `));
  return { answers };
}

/** Formats an interrupt for the terminal: title, description, questions, artifact and the remaining fields. */
export function interruptLines({ kind, data }: InterruptRequest): string[] {
  const { title, description, artifactData, actions, questions, ...rest } = data;
  const more = Object.entries(rest).filter(([, value]) => value !== undefined && value !== '');
  return [
    ...(typeof title === 'string' ? [sanitize(title)] : [kind]),
    ...(typeof description === 'string' ? [sanitize(description)] : []),
    ...questionsOf({ kind, data: { questions } }).map(({ id, question }) => sanitize(`  ${id}: ${question}`)),
    ...(isObject(artifactData)
      ? JSON.stringify(artifactData, null, 2)
          .split('\n')
          .map((line) => `  ${sanitize(line)}`)
      : []),
    ...(Array.isArray(actions) ? [`actions: ${sanitize(actions.join(', '))}`] : []),
    ...more.map(([name, value]) => sanitize(`${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)),
  ];
}
