import { isObject, type JsonObject } from '../protocol/format/json.ts';
import { UsageError } from './exit.ts';
import type { Terminal } from './terminal.ts';
import { harmless } from './text.ts';
import { looseValue } from './values.ts';

/** What is asked, as much of it as an answer depends on. */
export interface Asked {
  readonly kind: string;
  readonly data: JsonObject;
}

/** A yes or a no, in the words that the question understands: gates and approvals have their own. */
export function decision({ kind, data }: Asked, isYes: boolean, reason: string | undefined): JsonObject {
  const why = reason === undefined ? {} : { reason };
  if (typeof data.gateId === 'string') {
    const hash = typeof data.artifactHash === 'string' ? { artifactHash: data.artifactHash } : {};
    return { decision: isYes ? 'granted' : 'rejected', ...hash, ...why };
  }
  if (kind === 'approval' || kind === 'low-confidence') return { action: isYes ? 'accept' : 'reject', ...why };
  throw new UsageError(`This is no approval but a ${kind}: answer it with \`capstan approvals answer\`.`);
}

interface Question {
  readonly id: string;
  readonly question: string;
}

function questionsOf({ data }: Asked): readonly Question[] {
  return Array.isArray(data.questions) ? data.questions : [];
}

/** Answers from flags, by the id of the question; a single question needs no id. */
export function givenAnswers(asked: Asked, answers: JsonObject): JsonObject {
  const questions = questionsOf(asked);
  const unknown = Object.keys(answers).find((id) => !questions.some((question) => question.id === id));
  if (unknown !== undefined) {
    const ids = questions.map(({ id }) => id).join(', ') || 'none; give --value instead';
    throw new UsageError(`There is no question ${harmless(unknown)}. The questions are: ${harmless(ids)}.`);
  }
  return { answers };
}

/** Asks the person at the terminal what the run asks. */
export async function askedAnswers(terminal: Terminal, asked: Asked): Promise<JsonObject | unknown> {
  const questions = questionsOf(asked);
  if (questions.length === 0) return looseValue(await terminal.ask('Your answer, as JSON or text: '));
  const answers: JsonObject = {};
  for (const { id, question } of questions) answers[id] = looseValue(await terminal.ask(`${harmless(question)} `));
  return { answers };
}

export function questionLines({ kind, data }: Asked): string[] {
  const { title, description, artifactData, actions, questions, ...rest } = data;
  const more = Object.entries(rest).filter(([, value]) => value !== undefined && value !== '');
  return [
    ...(typeof title === 'string' ? [harmless(title)] : [kind]),
    ...(typeof description === 'string' ? [harmless(description)] : []),
    ...questionsOf({ kind, data: { questions } }).map(({ id, question }) => harmless(`  ${id}: ${question}`)),
    ...(isObject(artifactData)
      ? JSON.stringify(artifactData, null, 2)
          .split('\n')
          .map((line) => `  ${harmless(line)}`)
      : []),
    ...(Array.isArray(actions) ? [`actions: ${harmless(actions.join(', '))}`] : []),
    ...more.map(([name, value]) => harmless(`${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)),
  ];
}
