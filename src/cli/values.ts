import { readFile } from 'node:fs/promises';
import { isObject, type JsonObject } from '../protocol/format/json.ts';
import type { Given } from './command.ts';
import { UsageError } from './exit.ts';
import type { Terminal } from './terminal.ts';

/** JSON on the command line, in a file (`@path`), or piped in (`-`). */
export async function jsonValue(terminal: Terminal, text: string, what: string): Promise<unknown> {
  const json = text === '-' ? await terminal.input() : text.startsWith('@') ? await fileText(text.slice(1)) : text;
  try {
    return JSON.parse(json);
  } catch (error) {
    throw new UsageError(
      `${what} is not JSON: ${(error as Error).message}. Give it in quotes, as @file, or as - for what is piped in.`,
    );
  }
}

export async function jsonObject(terminal: Terminal, text: string, what: string): Promise<JsonObject> {
  const value = await jsonValue(terminal, text, what);
  if (isObject(value)) return value;
  throw new UsageError(`${what} must be a JSON object, as '{"name": "value"}'.`);
}

/** What --input and --set say together; the latter wins. */
export async function membersGiven(terminal: Terminal, { input, set }: Given['options']): Promise<JsonObject> {
  const whole = input === undefined ? {} : await jsonObject(terminal, String(input), '--input');
  return { ...whole, ...assignments(texts(set), '--set') };
}

/** `name=value`, the value as JSON where it is some, and as text otherwise. */
export function assignments(texts: readonly string[], what: string): JsonObject {
  return Object.fromEntries(
    texts.map((text) => {
      const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
      if (name === undefined) throw new UsageError(`${what} ${text} is not of the form name=value.`);
      return [name, looseValue(value!)];
    }),
  );
}

export function looseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export function wholeNumber(text: string, what: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new UsageError(`${what} must be a whole number, and ${JSON.stringify(text)} is none.`);
}

export async function fileText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${(error as NodeJS.ErrnoException).code}.`);
  }
}

export function text(value: Given['options'][string]): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

export function texts(value: Given['options'][string]): readonly string[] {
  return Array.isArray(value) ? value : [];
}

/** What can not be taken back is asked for twice: with --yes, or by a person. */
export async function confirm(terminal: Terminal, isSure: boolean, question: string): Promise<void> {
  if (isSure) return;
  if (terminal.isInteractive && /^y(es)?$/i.test((await terminal.ask(`${question} [y/N] `)).trim())) return;
  throw new UsageError('Nothing was done. Give --yes to do it.');
}
