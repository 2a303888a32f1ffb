import type { TSchema } from 'typebox';
import { explain } from '../protocol/format/explain.ts';
import { jsonErrorPlace } from '../protocol/format/json-error.ts';

/** Environment variables by name; undefined where a variable is not set. */
export type Environment = Readonly<Record<string, string | undefined>>;

interface EntryRules<T> {
  readonly schema: TSchema;
  /** What an entry is called, and the member that no two of them may share; without it, entries may be alike. */
  readonly unique?: { readonly what: string; readonly name: keyof T & string };
  /** What is wrong with an entry whose shape is right, each beginning with the member that it is about. */
  readonly check?: (entry: T) => readonly string[];
}

/**
 * A JSON array from the operator, checked entry by entry; there are none where anything is wrong. No message repeats a
 * value: somebody may have put a secret where its name belongs.
 */
export function readOperatorList<T>(
  text: string,
  { schema, unique, check = () => [] }: EntryRules<T>,
): { readonly entries: readonly T[]; readonly problems: readonly string[] } {
  const { list, problem } = parseOperatorList(text);
  if (problem !== undefined) return { entries: [], problems: [problem] };
  const problems = list.flatMap((entry, index) => {
    const misfits = explain(schema, entry).map(({ path, message }) => `${path && `.${path}`} ${message}.`);
    return [...(misfits.length > 0 ? misfits : check(entry as T))].map((found) => `[${index}]${found}`);
  });
  const names = unique ? (list as readonly Partial<T>[]).map((entry) => entry?.[unique.name]) : [];
  if (problems.length === 0 && new Set(names).size < names.length) problems.push(` names a ${unique?.what} twice.`);
  return { entries: problems.length === 0 ? (list as T[]) : [], problems };
}

/** The entries of a JSON array, not yet checked; or what keeps the text from being one. */
export function parseOperatorList(text: string): { readonly list: readonly unknown[]; readonly problem?: string } {
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) ? { list } : { list: [], problem: ' must be a JSON array.' };
  } catch {
    return { list: [], problem: ` must be a JSON array; it is not valid JSON from ${jsonErrorPlace(text)} on.` };
  }
}

/** Secrets are named where they are used, and taken from where their names lead. */
export function unsetReference(environment: Environment, credentialRef: string | undefined): string[] {
  if (credentialRef === undefined || environment[credentialRef]) return [];
  return ['.credentialRef names an environment variable that is not set.'];
}
