import { compileSchema, SCHEMA_CHARS_MAX, type SchemaCheck } from '../../engine/expressions/json-schema.ts';
import { isPlainSchema } from '../../engine/expressions/plain-schema.ts';
import { complexityProblem } from '../../engine/expressions/schema-bounds.ts';
import { TemporaryFailure } from '../../system/temporary-failure.ts';
import { BoundedCache } from '../bounded-cache.ts';

/** Validates values with JSON Schemas from untrusted sources: definitions, packs, models, tools of other servers. */
export interface SchemaValidator {
  /** Why a schema cannot be used; undefined if it can. Throws TemporaryFailure if that is not known now. */
  problemWith(schema: unknown): Promise<string | undefined>;
  /** The problems of a value, with their locations; empty if it is valid. Throws UnusableSchema or TemporaryFailure. */
  validate(schema: unknown, value: unknown): Promise<readonly string[]>;
  /** The same validator, for a tenant: its questions wait in a line of their own. */
  of(tenant: string): SchemaValidator;
  /** Frees what the validator holds. Nothing may be validated afterwards. */
  close(): Promise<void>;
}

/** Thrown if a schema is invalid, too complex, or takes too much time or memory with the value that it was given. */
export class UnusableSchema extends Error {
  override readonly name = 'UnusableSchema';
}

/** The problems of a value, for callers to whom an unusable schema is a problem like any other. */
export async function problemsOf(
  schemas: Pick<SchemaValidator, 'validate'>,
  schema: unknown,
  value: unknown,
): Promise<readonly string[]> {
  try {
    return await schemas.validate(schema, value);
  } catch (error) {
    if (!(error instanceof UnusableSchema)) throw error;
    return [`cannot be checked: ${error.message}`];
  }
}

/** A question to a compiled schema. Without `value`, only the schema is checked. */
export interface SchemaRequest {
  /** The schema as JSON. */
  readonly schema: string;
  readonly value?: { readonly given: unknown };
}

/** The answer: the problems of the value, why the schema cannot be used, or why there is no answer now. */
export type SchemaReply =
  | { readonly problems: readonly string[] }
  | { readonly unusable: string }
  | { readonly postponed: string };

/** An answer that says something about the schema or the value. */
type Verdict = Exclude<SchemaReply, { readonly postponed: string }>;

/** How a question of a tenant is answered: in this thread or in another one. */
type Answer = (request: SchemaRequest, tenant: string) => SchemaReply | Promise<SchemaReply>;

/** The line of the host's own questions. */
export const HOST_LINE = '';

/** Makes a validator of a function that answers single questions. */
export function validatorFrom(answer: Answer, close: () => Promise<void>, line = HOST_LINE): SchemaValidator {
  const ask = async (schema: unknown, value?: { given: unknown }): Promise<Verdict> => {
    const text = JSON.stringify(schema) ?? 'null';
    // Checked here, so that a long text is not copied.
    if (text.length > SCHEMA_CHARS_MAX) {
      return { unusable: `the schema is longer than ${SCHEMA_CHARS_MAX} characters` };
    }
    const reply = await answer({ schema: text, ...(value ? { value } : {}) }, line);
    if ('postponed' in reply) throw new TemporaryFailure(`A JSON Schema was not checked: ${reply.postponed}.`);
    return reply;
  };
  return {
    async problemWith(schema) {
      if (isObviouslyUsable(schema)) return undefined;
      const reply = await ask(schema);
      return 'unusable' in reply ? reply.unusable : undefined;
    },
    async validate(schema, given) {
      const reply = await ask(schema, { given });
      if ('unusable' in reply) throw new UnusableSchema(reply.unusable);
      return reply.problems;
    },
    of: (tenant) => validatorFrom(answer, close, tenant),
    close,
  };
}

/** The longest schema that is looked at before it is compiled. */
const PLAIN_CHARS_MAX = 4_096;

function isObviouslyUsable(schema: unknown): boolean {
  const { length = 0 } = JSON.stringify(schema) ?? '';
  return length <= PLAIN_CHARS_MAX && complexityProblem(schema) === undefined && isPlainSchema(schema);
}

const COMPILED_MAX = 500;

/** Answers questions in this thread, and keeps the compiled schemas that were used last. */
export function schemaAnswerer(): (request: SchemaRequest) => SchemaReply {
  const compiled = new BoundedCache<string, SchemaCheck>(COMPILED_MAX);
  const checkOf = (text: string): SchemaCheck => {
    const check = compiled.get(text) ?? compileSchema(JSON.parse(text));
    compiled.set(text, check);
    return check;
  };
  return ({ schema, value }) => {
    try {
      const check = checkOf(schema);
      return { problems: value ? check(value.given) : [] };
    } catch (error) {
      return { unusable: (error as Error).message };
    }
  };
}

/** A validator without a thread and a deadline, for schemas of the own user and for the simulation. */
export function localSchemaValidator(): SchemaValidator {
  return validatorFrom(schemaAnswerer(), async () => {});
}
