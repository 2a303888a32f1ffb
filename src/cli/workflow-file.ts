import { capabilities } from '../capabilities/index.ts';
import { triggersOf } from '../capabilities/starting/schedules/door.ts';
import { readConfig } from '../config.ts';
import { checkDefinition } from '../engine/definition/check.ts';
import { validator } from '../http/validation.ts';
import { isRefusal } from '../protocol/errors.ts';
import { WorkflowDefinition } from '../protocol/running/workflows.ts';
import { catalogOf } from '../runtime/catalog.ts';
import { findSecret } from '../system/redaction.ts';
import { fileText } from './values.ts';

/** A place in a file, and what is wrong there. */
export interface FileProblem {
  readonly path: string;
  readonly message: string;
}

export interface WorkflowFile {
  /** Present when nothing is wrong. */
  readonly definition?: WorkflowDefinition;
  readonly problems: readonly FileProblem[];
}

const misfitOf = validator(WorkflowDefinition, 'body');
const DEFAULTS = readConfig({}, {});
const catalog = catalogOf(capabilities.flatMap(({ nodes }) => nodes(DEFAULTS)));

/** Checks a definition as a host of this version does when it is registered. */
export async function readWorkflowFile(path: string): Promise<WorkflowFile> {
  const parsed = parse(await fileText(path));
  if ('problem' in parsed) return { problems: [parsed.problem] };
  const misfit = misfitOf(parsed.value);
  if (misfit) return { problems: misfit.details!.fields as FileProblem[] };
  const definition = parsed.value as WorkflowDefinition;
  const secret = findSecret(definition);
  const problems = [
    ...checkDefinition(definition, catalog),
    ...triggerProblems(definition),
    ...(secret === undefined ? [] : [{ path: secret, message: 'looks like a secret; refer to it by name instead' }]),
  ];
  return problems.length === 0 ? { definition, problems } : { problems };
}

function triggerProblems(definition: WorkflowDefinition): readonly FileProblem[] {
  const triggers = triggersOf(definition);
  return isRefusal(triggers) ? (triggers.details!.fields as FileProblem[]) : [];
}

function parse(text: string): { readonly value: unknown } | { readonly problem: FileProblem } {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { problem: { path: placeIn(text, goodUntil(text)), message: 'is not JSON from here on' } };
  }
}

/** How much of the text could still become JSON. The parser names places only now and then, so it is asked often. */
function goodUntil(text: string): number {
  let [good, bad] = [0, text.length];
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (isBeginning(text.slice(0, middle))) good = middle;
    else bad = middle;
  }
  return good;
}

/** Whether nothing is wrong with the text before its end. */
function isBeginning(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    const { message } = error as Error;
    return message.includes('end of JSON') || message.includes(`at position ${text.length} `);
  }
}

function placeIn(text: string, position: number): string {
  const lines = text.slice(0, position).split('\n');
  return `line ${lines.length}, column ${lines.at(-1)!.length + 1}`;
}
