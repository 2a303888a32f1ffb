import { Ajv, type Options } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { DRAFT_04 } from './draft-04.ts';

/** A version of JSON Schema. */
interface Dialect {
  /** Makes a compiler of its schemas. */
  readonly compiler: (options: Options) => Pick<Ajv, 'compile' | 'removeKeyword'>;
  /** Throws if a schema does not match the meta-schema. */
  readonly checkSchema: (schema: object) => void;
}

/** The check against a meta-schema, which is compiled once: that takes longer than compiling most schemas. */
function metaCheck(make: () => Pick<Ajv, 'validateSchema'>): (schema: object) => void {
  let ajv: Pick<Ajv, 'validateSchema'> | undefined;
  return (schema) => {
    ajv ??= make();
    ajv.validateSchema(schema, true);
  };
}

function dialect(compiler: (options: Options) => Ajv, metaSchema?: object): Dialect {
  const make = (): Ajv => {
    // Optimising the generated code takes a third of the time until the first schema is checked.
    const options = { strict: false, validateFormats: false, logger: false, code: { optimize: false } } as const;
    return metaSchema
      ? new Ajv({ ...options, defaultMeta: 'draft-04' }).addMetaSchema(metaSchema, 'draft-04', false)
      : compiler(options);
  };
  return { compiler, checkSchema: metaCheck(make) };
}

/** Before 2019-09, what stands beside a `$ref` means nothing. */
const draft = (options: Options): Ajv => new Ajv({ ...options, ignoreKeywordsWithRef: true });

const LATEST = dialect((options) => new Ajv2020(options));

const DIALECTS: ReadonlyMap<string, Dialect> = new Map([
  ['schema', LATEST],
  ['draft/2020-12/schema', LATEST],
  ['draft/2019-09/schema', dialect((options) => new Ajv2019(options))],
  ['draft-07/schema', dialect(draft)],
  ['draft-06/schema', dialect((options) => without(draft(options), 'if'))],
  ['draft-04/schema', dialect(draft04, DRAFT_04)],
]);

/** The dialect that `$schema` names, by default 2020-12; throws if this host does not know it. Nothing is fetched. */
export function dialectOf($schema: unknown): Dialect {
  if ($schema === undefined) return LATEST;
  const name = typeof $schema === 'string' ? /^https?:\/\/json-schema\.org\/(.+?)#?$/.exec($schema)?.[1] : undefined;
  const dialect = DIALECTS.get(name ?? '');
  if (!dialect) throw new Error('`$schema` must name draft 4, 6, 7, 2019-09 or 2020-12 of JSON Schema');
  return dialect;
}

/** In draft 4, `exclusiveMinimum` and `exclusiveMaximum` say how to read `minimum` and `maximum`. */
function draft04(options: Options): Ajv {
  const ajv = draft({ ...options, schemaId: 'id', validateSchema: false });
  without(ajv, 'if', 'const', 'contains', 'propertyNames', ...Object.values(LIMITS).map(({ exclusive }) => exclusive));
  for (const [keyword, { exclusive, sign, isWithin }] of Object.entries(LIMITS)) {
    without(ajv, keyword).addKeyword({
      keyword,
      type: 'number',
      compile: (limit: number, schema) => (value: number) =>
        isWithin(value, limit) && (value !== limit || schema[exclusive] !== true),
      error: {
        message: ({ schema, parentSchema }) => `must be ${sign}${parentSchema?.[exclusive] ? '' : '='} ${schema}`,
      },
    });
  }
  return ajv;
}

const LIMITS = {
  minimum: { exclusive: 'exclusiveMinimum', sign: '>', isWithin: (value: number, limit: number) => value >= limit },
  maximum: { exclusive: 'exclusiveMaximum', sign: '<', isWithin: (value: number, limit: number) => value <= limit },
} as const;

function without(ajv: Ajv, ...keywords: readonly string[]): Ajv {
  for (const keyword of keywords) ajv.removeKeyword(keyword);
  return ajv;
}
