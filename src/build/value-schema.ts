import { type Static, type TSchema, Type } from 'typebox';
import { Compile } from 'typebox/compile';

/** A schema of another library, as far as the Standard Schema convention says. */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What describes a value: a TypeBox schema, or a schema of any library that follows Standard Schema. */
export type ValueSchema = TSchema | StandardSchema;

/** The type of the values that fit a schema. */
export type ValueOf<S> = S extends StandardSchema<infer Output> ? Output : S extends TSchema ? Static<S> : never;

/** A value that fits its schema, or a sentence that says what is wrong with it. */
export type Checked = { readonly value: unknown } | { readonly problem: string };

/** Checks values against one schema; compiled once. */
export type ValueCheck = (value: unknown) => Checked | Promise<Checked>;

/** Makes a check of a schema. Without a schema, everything fits. */
export function checkOf(schema: ValueSchema | undefined): ValueCheck {
  if (schema === undefined) return (value) => ({ value });
  return isStandard(schema) ? (value) => checkStandard(schema, value) : checkTypeBox(schema);
}

/** The JSON Schema of a value, for catalogues and models. Schemas of other libraries are shown as "anything". */
export function jsonSchemaOf(schema: ValueSchema | undefined): TSchema {
  return schema === undefined || isStandard(schema) ? Type.Unknown() : schema;
}

/** Whether a schema is one of another library. */
export function isStandard(schema: ValueSchema): schema is StandardSchema {
  return '~standard' in schema;
}

function checkTypeBox(schema: TSchema): ValueCheck {
  const validator = Compile(schema);
  return (value) => {
    if (validator.Check(value)) return { value };
    const [first] = validator.Errors(value);
    return { problem: `${first?.instancePath || 'It'} ${first?.message ?? 'does not fit'}` };
  };
}

async function checkStandard(schema: StandardSchema, value: unknown): Promise<Checked> {
  const result = await schema['~standard'].validate(value);
  const [first] = result.issues ?? [];
  if (!first) return { value: (result as { value: unknown }).value };
  const path = (first.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part));
  return { problem: `${path.length > 0 ? `/${path.join('/')}` : 'It'}: ${first.message}` };
}
