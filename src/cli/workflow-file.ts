import { parseDocument } from 'yaml';
import { capabilities } from '../capabilities/index.ts';
import { triggersOf } from '../capabilities/starting/schedules/door.ts';
import { declaredTriggers } from '../capabilities/starting/triggers/door.ts';
import { readConfig } from '../config.ts';
import { completeWorkflow } from '../engine/definition/complete.ts';
import { definitionWarnings } from '../engine/definition/warnings.ts';
import { validator } from '../http/validation.ts';
import { isRefusal } from '../protocol/errors.ts';
import { jsonErrorPlace, lineAndColumn } from '../protocol/format/json-error.ts';
import { AuthoredWorkflow, type WorkflowDefinition } from '../protocol/running/workflows.ts';
import { catalogOf } from '../runtime/catalog.ts';
import { workflowProblems } from '../runtime/validation/definition-problems.ts';
import { localSchemaValidator } from '../runtime/validation/schema-validator.ts';
import { findSecret } from '../system/redaction.ts';
import { readTextFile } from './values.ts';

/** A problem or a warning: the place (field path, or line and column) and the message. */
export interface Finding {
  readonly path: string;
  readonly message: string;
}

/** What a check of a workflow came to. */
export interface Checked {
  readonly problems: readonly Finding[];
  /** What is allowed and yet probably not meant. */
  readonly warnings: readonly Finding[];
}

const checkSchema = validator(AuthoredWorkflow, 'body');
const DEFAULTS = readConfig({}, {});
const TYPES = capabilities.flatMap(({ nodes }) => nodes(DEFAULTS));

/** Reads a workflow, complete, from a JSON or YAML file; or what is wrong with its text or its fields. */
export async function readWorkflowFile(path: string): Promise<WorkflowDefinition | Pick<Checked, 'problems'>> {
  const text = await readTextFile(path);
  const parsed = /\.ya?ml$/i.test(path) ? parseYaml(text) : parse(text);
  return 'problem' in parsed ? { problems: [parsed.problem] } : definitionFrom(parsed.value);
}

/** A value as a complete workflow, or what is wrong with its fields. */
export function definitionFrom(value: unknown): WorkflowDefinition | Pick<Checked, 'problems'> {
  const mismatch = checkSchema(value);
  if (mismatch) return { problems: mismatch.details!.fields as Finding[] };
  return completeWorkflow(value as AuthoredWorkflow);
}

/** Checks a workflow as a host of this version would that has only built-in node types and the given ones. */
export async function checkDefinition(
  definition: WorkflowDefinition,
  ownTypes: Parameters<typeof catalogOf>[0] = [],
): Promise<Checked> {
  const catalog = catalogOf([...TYPES, ...ownTypes]);
  const secret = findSecret(definition);
  const problems = [
    ...(await workflowProblems(definition, { catalog, schemas: localSchemaValidator() })),
    ...triggerProblems(definition),
    ...(secret === undefined ? [] : [{ path: secret, message: 'looks like a secret; refer to it by name instead' }]),
  ];
  return { problems, warnings: problems.length > 0 ? [] : definitionWarnings(definition, catalog) };
}

function triggerProblems(definition: WorkflowDefinition): readonly Finding[] {
  return [triggersOf(definition), declaredTriggers(definition)].flatMap((triggers) =>
    isRefusal(triggers) ? (triggers.details!.fields as Finding[]) : [],
  );
}

function parse(text: string): { readonly value: unknown } | { readonly problem: Finding } {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { problem: { path: jsonErrorPlace(text), message: 'invalid JSON from here on' } };
  }
}

/** Values are those of JSON: anchors are not followed, because a few of them can stand for a very large document. */
function parseYaml(text: string): { readonly value: unknown } | { readonly problem: Finding } {
  const document = parseDocument(text, { schema: 'core', prettyErrors: false });
  const [error] = document.errors;
  if (error) return { problem: { path: lineAndColumn(text, error.pos[0]), message: `invalid YAML: ${error.message}` } };
  try {
    return { value: document.toJS({ maxAliasCount: 0 }) };
  } catch {
    return { problem: { path: '', message: 'YAML anchors and aliases are not supported' } };
  }
}
