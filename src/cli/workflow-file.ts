import { capabilities } from '../capabilities/index.ts';
import { triggersOf } from '../capabilities/starting/schedules/door.ts';
import { readConfig } from '../config.ts';
import { validator } from '../http/validation.ts';
import { isRefusal } from '../protocol/errors.ts';
import { WorkflowDefinition } from '../protocol/running/workflows.ts';
import { catalogOf } from '../runtime/catalog.ts';
import { workflowProblems } from '../runtime/validation/definition-problems.ts';
import { localSchemaValidator } from '../runtime/validation/schema-validator.ts';
import { findSecret } from '../system/redaction.ts';
import { readTextFile } from './values.ts';

/** A problem in a workflow file: the place (field path, or line and column) and the message. */
interface FileProblem {
  readonly path: string;
  readonly message: string;
}

/** The result of checking a workflow file. */
interface WorkflowFile {
  /** Undefined when there are problems. */
  readonly definition?: WorkflowDefinition;
  readonly problems: readonly FileProblem[];
}

const checkSchema = validator(WorkflowDefinition, 'body');
const DEFAULTS = readConfig({}, {});
const catalog = catalogOf(capabilities.flatMap(({ nodes }) => nodes(DEFAULTS)));

/** Checks a workflow file with the same rules that a host of this version applies on registration. */
export async function readWorkflowFile(path: string): Promise<WorkflowFile> {
  const parsed = parse(await readTextFile(path));
  if ('problem' in parsed) return { problems: [parsed.problem] };
  const mismatch = checkSchema(parsed.value);
  if (mismatch) return { problems: mismatch.details!.fields as FileProblem[] };
  const definition = parsed.value as WorkflowDefinition;
  const secret = findSecret(definition);
  const problems = [
    ...(await workflowProblems(definition, { catalog, schemas: localSchemaValidator() })),
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
    return { problem: { path: lineAndColumn(text, firstErrorIn(text)), message: 'invalid JSON from here on' } };
  }
}

/** Finds the first syntax error by binary search, because JSON.parse does not always report a position. */
function firstErrorIn(text: string): number {
  let [valid, invalid] = [0, text.length];
  while (invalid - valid > 1) {
    const middle = (valid + invalid) >> 1;
    if (isValidPrefix(text.slice(0, middle))) valid = middle;
    else invalid = middle;
  }
  return valid;
}

/** Returns true when the text is valid JSON, or could become so if it went on. */
function isValidPrefix(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    const { message } = error as Error;
    return message.includes('end of JSON') || message.includes(`at position ${text.length} `);
  }
}

function lineAndColumn(text: string, position: number): string {
  const lines = text.slice(0, position).split('\n');
  return `line ${lines.length}, column ${lines.at(-1)!.length + 1}`;
}
