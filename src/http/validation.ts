import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { type Refusal, refuse } from '../protocol/errors.ts';

/** A place in a request that does not fit, and why. Values are never repeated. */
export interface FieldProblem {
  readonly path: string;
  readonly message: string;
}

interface SchemaError {
  readonly keyword: string;
  readonly schemaPath: string;
  readonly instancePath: string;
  readonly params: Record<string, unknown>;
  readonly message: string;
}

const PROBLEMS_MAX = 10;

export type Validate = (value: unknown) => Refusal | undefined;

/** Checks a part of a request against its schema; `part` is what to call it. */
export function validator(schema: TSchema, part: 'body' | 'query' | 'path'): Validate {
  let compiled: Validator | undefined;
  return (value) => {
    compiled ??= Compile(schema);
    if (compiled.Check(value)) return undefined;
    const fields = problemsOf(compiled.Errors(value) as unknown as SchemaError[]);
    const [first = { path: '', message: 'does not fit' }] = fields;
    const place = first.path === '' ? `The ${part}` : first.path;
    return refuse('validation_error', `${place} ${first.message}.`, { field: first.path || part, fields });
  };
}

function problemsOf(errors: readonly SchemaError[]): FieldProblem[] {
  const problems = likelyErrors(errors).flatMap(problemOf);
  const distinct = new Map(problems.map((problem) => [`${problem.path} ${problem.message}`, problem]));
  return [...distinct.values()].slice(0, PROBLEMS_MAX);
}

/** Of a union, only what is wrong with the alternative that was meant: the one whose tag fits. */
function likelyErrors(errors: readonly SchemaError[]): SchemaError[] {
  const missed = new Set(
    errors.filter(({ keyword }) => keyword === 'const').map(({ schemaPath }) => alternativeOf(schemaPath)),
  );
  const meant = errors.filter(
    ({ schemaPath, keyword }) => keyword !== 'anyOf' && !missed.has(alternativeOf(schemaPath)),
  );
  return meant.length > 0 ? meant : errors.filter(({ keyword }) => keyword !== 'const');
}

/** The innermost alternative of a union that a schema path leads into. */
function alternativeOf(schemaPath: string): string | undefined {
  const end = schemaPath.lastIndexOf('/anyOf/');
  if (end < 0) return undefined;
  const [index = ''] = schemaPath.slice(end + '/anyOf/'.length).split('/', 1);
  return schemaPath.slice(0, end) + index;
}

function problemOf({ keyword, instancePath, params, message }: SchemaError): FieldProblem[] {
  const path = dotted(instancePath);
  if (keyword === 'boolean') return [];
  if (keyword === 'required') {
    return names(params.requiredProperties).map((name) => ({ path: join(path, name), message: 'is missing' }));
  }
  if (keyword === 'additionalProperties' || keyword === 'unevaluatedProperties') {
    const unknown = names(params.additionalProperties ?? params.unevaluatedProperties);
    return unknown.map((name) => ({ path: join(path, name), message: 'is not known here' }));
  }
  if (keyword === 'enum') return [{ path, message: `must be one of ${names(params.allowedValues).join(', ')}` }];
  return [{ path, message }];
}

function names(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

/** `/nodes/2/config` as `nodes[2].config`. */
function dotted(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, segment) => join(path, segment), '');
}

function join(path: string, segment: string): string {
  if (/^[0-9]+$/.test(segment) && path !== '') return `${path}[${segment}]`;
  return path === '' ? segment : `${path}.${segment}`;
}
