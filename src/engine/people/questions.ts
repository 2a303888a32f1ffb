import { isObject, type JsonObject } from '../../protocol/format/json.ts';
import type { InterruptRequest } from './interrupts.ts';

/** A question that code asks a person. */
interface CodeQuestion {
  readonly prompt: string;
  /** JSON Schema of the answer. */
  readonly answer?: JsonObject | undefined;
  readonly timeoutMs?: number | undefined;
}

const QUESTION_ID = 'answer';

/** The interrupt that asks it. */
export function questionOf({ prompt, answer, timeoutMs }: CodeQuestion): InterruptRequest {
  const question = { id: QUESTION_ID, question: prompt, ...(answer ? { schema: answer } : {}) };
  return { kind: 'clarification', data: { questions: [question] }, timeoutMs };
}

/** The answer in what an interrupt of `questionOf` was resumed with; answers may come as a map or as a list. */
export function answerIn(resumeValue: unknown): unknown {
  const answers = isObject(resumeValue) ? resumeValue.answers : undefined;
  if (Array.isArray(answers)) return (answers[0] as { answer?: unknown } | undefined)?.answer ?? answers[0];
  return isObject(answers) ? answers[QUESTION_ID] : answers;
}
