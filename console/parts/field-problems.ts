import { RefusedError } from '../../src/client/index.ts';
import { isObject } from '../../src/protocol/format/json.ts';
import { explain } from './explain.ts';

/** What is wrong with a form, by the path of the field as the host writes it (`schedule.cron`), and what is no field's. */
export interface FieldProblems {
  readonly fields: Readonly<Record<string, string>>;
  readonly rest: string | undefined;
}

const NONE: FieldProblems = { fields: {}, rest: undefined };

/**
 * The host's words about a form that it refused, by field. A problem of a field that the form does not have, or that
 * has no field, is in `rest`, so that nothing is refused without a word.
 */
export function problemsOf(error: unknown, known: readonly string[]): FieldProblems {
  if (error === null || error === undefined) return NONE;
  if (!(error instanceof RefusedError)) return { fields: {}, rest: explain(error).text };
  // Lists are written as a[0] or as a.0.
  const named = namedIn(error).map(([path, message]) => [path.replace(/\[(\d+)\]/g, '.$1'), message] as const);
  const placed = named.flatMap(([path, message]) => {
    const name = known.find((field) => path === field) ?? known.find((field) => isWithin(path, field));
    return name === undefined ? [] : [[name, message] as const];
  });
  const fields = Object.fromEntries(placed.toReversed());
  return { fields, rest: placed.length === 0 ? explain(error).text : undefined };
}

function namedIn({ details, message }: RefusedError): readonly (readonly [path: string, message: string])[] {
  const { field, fields } = details;
  const listed = Array.isArray(fields) ? fields.filter(isObject) : [];
  if (listed.length > 0) return listed.map((each) => [String(each.path), `This ${each.message}.`] as const);
  return typeof field === 'string' ? [[field, message]] : [];
}

function isWithin(path: string, field: string): boolean {
  return path.startsWith(`${field}.`);
}
