import type { TSchema } from 'typebox';
import { type Refusal, refuse } from '../protocol/errors.ts';
import { compiledSchema } from '../protocol/format/compiled-schema.ts';
import { explain } from '../protocol/format/explain.ts';

/** Refuses a value that does not match the schema. */
type Validate = (value: unknown) => Refusal | undefined;

/** Makes a check of one part of a request; its schema is compiled when it is first used. */
export function validator(schema: TSchema, part: 'body' | 'query' | 'path'): Validate {
  return (value) => {
    if (compiledSchema(schema).Check(value)) return undefined;
    const fields = explain(schema, value);
    const [first = { path: '', message: 'does not match its schema' }] = fields;
    const place = first.path === '' ? `The ${part}` : first.path;
    return refuse('validation_error', `${place} ${first.message}.`, { field: first.path || part, fields });
  };
}
