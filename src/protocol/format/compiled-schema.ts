import { Compile, type Validator } from 'typebox/compile';

/** Validators by schema: a process may have several hosts, and each its own routes and node types with the same schemas. */
const validators = new WeakMap<object, Validator>();

/** The validator of a schema of our own, which is compiled when it is first asked for. */
export function compiledSchema(schema: object): Validator {
  const known = validators.get(schema);
  if (known) return known;
  const compiled = Compile(schema);
  validators.set(schema, compiled);
  return compiled;
}
