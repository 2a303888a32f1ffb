import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { type Refusal, refuse } from '../protocol/errors.ts';
import { explain } from './explain.ts';

export type Validate = (value: unknown) => Refusal | undefined;

/** Checks a part of a request against its schema; `part` is what to call it. */
export function validator(schema: TSchema, part: 'body' | 'query' | 'path'): Validate {
  let compiled: Validator | undefined;
  return (value) => {
    compiled ??= Compile(schema);
    if (compiled.Check(value)) return undefined;
    const fields = explain(schema, value);
    const [first = { path: '', message: 'does not fit' }] = fields;
    const place = first.path === '' ? `The ${part}` : first.path;
    return refuse('validation_error', `${place} ${first.message}.`, { field: first.path || part, fields });
  };
}
