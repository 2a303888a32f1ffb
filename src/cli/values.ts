import { readFile } from 'node:fs/promises';
import { RefusedError } from '../client/index.ts';
import { isObject, type JsonObject } from '../protocol/format/json.ts';
import { nearest } from '../protocol/format/nearest.ts';
import type { WorkflowVariable } from '../protocol/running/workflows.ts';
import type { CommandInput, Context } from './command.ts';
import { UsageError } from './exit.ts';
import type { Terminal } from './terminal.ts';
import { sanitize, shortText } from './text.ts';

/** Parses JSON that is given on the command line, in a file (`@path`) or on standard input (`-`). */
export async function parseJsonArgument(terminal: Terminal, text: string, what: string): Promise<unknown> {
  const isInline = text !== '-' && !text.startsWith('@');
  const json = isInline ? text : text === '-' ? await terminal.input() : await readTextFile(text.slice(1));
  try {
    return JSON.parse(json);
  } catch (error) {
    // Of a line that was typed, it shows what the shell has left.
    const read = isInline ? `, in ${sanitize(shortText(text))}` : '';
    throw new UsageError(
      `${what} is not valid JSON: ${(error as Error).message}${read}. Pass it in quotes, as @file, or as - for standard input.`,
    );
  }
}

/** Like `parseJsonArgument`, but only accepts an object. */
export async function parseJsonObject(terminal: Terminal, text: string, what: string): Promise<JsonObject> {
  const value = await parseJsonArgument(terminal, text, what);
  if (isObject(value)) return value;
  throw new UsageError(`${what} must be a JSON object, for example '{"name": "value"}'.`);
}

/** The variables that a workflow declares. */
type Declared = readonly Pick<WorkflowVariable, 'name' | 'type'>[];

/** For commands whose inputs are those of a workflow. */
export const UNDECLARED_FLAG = { '--allow-unknown': 'also send inputs that the workflow does not declare' } as const;

/**
 * Combines --input and --set into one object; --set wins. Its values are read by the types that the workflow declares,
 * which is asked for only then, and a name that it does not declare is refused unless --allow-unknown is set.
 */
export async function inputsFromOptions(
  context: Context,
  { input, set, allowUnknown }: CommandInput['options'],
  workflowOf: () => string | undefined | Promise<string> = () => undefined,
): Promise<JsonObject> {
  const whole = input === undefined ? {} : await parseJsonObject(context.terminal, String(input), '--input');
  const texts = listOption(set);
  const isGiven = input !== undefined || texts.length > 0;
  const workflowId = isGiven ? await workflowOf() : undefined;
  const declared = workflowId === undefined ? [] : await variablesOf(context, workflowId);
  const inputs = { ...whole, ...parseAssignments(texts, '--set', declared) };
  const undeclared = allowUnknown === true ? [] : undeclaredInputs(inputs, declared);
  if (undeclared.length > 0) {
    throw new UsageError([...undeclared, 'To send it anyway, add --allow-unknown.'].join('\n'));
  }
  return inputs;
}

/** Leaves `inputs` out when none are given, because an empty object would override the inputs of a forked run. */
export async function inputsOf(
  context: Context,
  options: CommandInput['options'],
  workflowOf: () => string | Promise<string>,
): Promise<{ readonly inputs?: JsonObject }> {
  const inputs = await inputsFromOptions(context, options, workflowOf);
  return Object.keys(inputs).length > 0 || options.input !== undefined ? { inputs } : {};
}

/**
 * Inputs that a workflow does not declare, in words. The host takes them, because nodes may read them undeclared; typed at
 * a terminal they are mistakes.
 */
function undeclaredInputs(inputs: JsonObject, declared: Declared): string[] {
  const known = declared.map(({ name }) => name);
  if (known.length === 0) return [];
  return Object.keys(inputs)
    .filter((name) => !known.includes(name))
    .map((name) => {
      const meant = nearest(name, known);
      const advice = meant === undefined ? `it declares ${known.join(', ')}.` : `did you mean ${meant}?`;
      return sanitize(`The workflow declares no input ${name}; ${advice}`);
    });
}

/** The declared variables of a workflow; none if it cannot be read, because what uses it says why. */
async function variablesOf(context: Context, workflowId: string): Promise<Declared> {
  try {
    return (await (await context.client()).getWorkflow(workflowId)).variables;
  } catch (error) {
    if (error instanceof RefusedError) return [];
    throw error;
  }
}

/**
 * Parses `name=value` arguments. A value that is not JSON stays text, and so does one of a declared string; one of
 * another declared type has to be JSON.
 */
export function parseAssignments(texts: readonly string[], what: string, declared: Declared = []): JsonObject {
  return Object.fromEntries(
    texts.map((text) => {
      const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
      if (name === undefined) throw new UsageError(`${what} ${text} must have the form name=value.`);
      return [
        name,
        assignedValue(
          value!,
          what,
          declared.find((variable) => variable.name === name),
        ),
      ];
    }),
  );
}

const EXAMPLES: Readonly<Record<string, string>> = {
  object: '{"a": 1}',
  array: '[1, 2]',
  number: '5',
  boolean: 'true',
};

function assignedValue(text: string, what: string, declared: Declared[number] | undefined): unknown {
  const parsed = jsonOrText(text);
  if (declared?.type === 'string') return typeof parsed === 'string' ? parsed : text;
  if (!declared || parsed !== text) return parsed;
  const { name, type } = declared;
  const given = shortText(text) || 'an empty text';
  throw new UsageError(
    sanitize(`${what} ${name} must be of type ${type}, and ${given} is ${adviceFor(what, declared)}`),
  );
}

/** Only what has brackets or spaces suffers from the shell. */
function adviceFor(what: string, { name, type }: Declared[number]): string {
  const example = `${name}=${EXAMPLES[type]}`;
  if (type === 'number' || type === 'boolean') return `none. Write for example ${what} ${example}.`;
  return `not JSON. Write it in quotes that the shell keeps, for example ${what} '${example}'.`;
}

/** Parses JSON, or returns the text itself when it is not JSON. */
export function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Parses a non-negative integer option. */
export function parseInteger(text: string, what: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new UsageError(`${what} must be a whole number, not ${JSON.stringify(text)}.`);
}

/** Reads a file that the user named; a missing file is a usage error. */
export async function readTextFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UsageError(
      code === 'ENOENT' ? `There is no file ${path}. Check the path.` : `Cannot read the file ${path} (${code}).`,
    );
  }
}

/** The value of an option that takes one string. */
export function stringOption(value: CommandInput['options'][string]): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** The values of an option that may be repeated. */
export function listOption(value: CommandInput['options'][string]): readonly string[] {
  return Array.isArray(value) ? value : [];
}

/** Requires --yes, or a yes at the prompt, before something irreversible. */
export async function confirm(terminal: Terminal, isConfirmed: boolean, question: string): Promise<void> {
  if (isConfirmed) return;
  if (terminal.isInteractive && /^y(es)?$/i.test((await terminal.ask(`${question} [y/N] `)).trim())) return;
  throw new UsageError('Cancelled. Nothing was changed. Add --yes to skip this confirmation.');
}
