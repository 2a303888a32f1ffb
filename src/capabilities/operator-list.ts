import type { TSchema } from 'typebox';
import { explain } from '../protocol/format/explain.ts';

/** Environment variables by name; undefined where a variable is not set. */
export type Environment = Readonly<Record<string, string | undefined>>;

interface EntryRules<T> {
  readonly schema: TSchema;
  /** What an entry is, and the member that no two of them may share. */
  readonly what: string;
  readonly name: keyof T & string;
  /** What is wrong with an entry whose shape is right, each beginning with the member that it is about. */
  check(entry: T): readonly string[];
}

/**
 * A JSON array from the operator, checked entry by entry; there are none where anything is wrong. No message repeats a
 * value: somebody may have put a secret where its name belongs.
 */
export function readOperatorList<T>(
  text: string,
  { schema, what, name, check }: EntryRules<T>,
): { readonly entries: readonly T[]; readonly problems: readonly string[] } {
  const list = parse(text);
  if (!Array.isArray(list)) return { entries: [], problems: [' must be a JSON array.'] };
  const problems = list.flatMap((entry, index) => {
    const misfits = explain(schema, entry).map(({ path, message }) => `${path && `.${path}`} ${message}.`);
    return [...(misfits.length > 0 ? misfits : check(entry as T))].map((problem) => `[${index}]${problem}`);
  });
  const names = (list as readonly Partial<T>[]).map((entry) => entry?.[name]);
  if (problems.length === 0 && new Set(names).size < names.length) problems.push(` names a ${what} twice.`);
  return { entries: problems.length === 0 ? (list as T[]) : [], problems };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Secrets are named where they are used, and taken from where their names lead. */
export function unsetReference(environment: Environment, credentialRef: string | undefined): string[] {
  if (credentialRef === undefined || environment[credentialRef]) return [];
  return ['.credentialRef names an environment variable that is not set.'];
}
