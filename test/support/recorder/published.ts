import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Check, checkBy, newAjv, once } from './compile.ts';

const FOLDER = fileURLToPath(new URL('../../../../shared/openwop/schemas/', import.meta.url));
const BASE = 'https://openwop.dev/spec/v1/';

/** The protocol's published schemas. */
export interface Published {
  /** The check by a schema, such as `goal`, or by a part of one, such as `agent-manifest#/$defs/X`. */
  check(name: string): Check;
  /** Undefined for types that the catalogue does not know: readers must let those pass. */
  payload(type: string): Check | undefined;
}

let loaded: Published | undefined;

/** The published schemas, where they lie beside the repository. They are read once and compiled when they are used. */
export function publishedSchemas(): Published | undefined {
  if (!existsSync(FOLDER)) return undefined;
  loaded ??= load();
  return loaded;
}

function load(): Published {
  const ajv = newAjv();
  const documents = new Map<string, Record<string, unknown>>();
  for (const name of readdirSync(FOLDER).filter((file) => file.endsWith('.schema.json'))) {
    const document = JSON.parse(readFileSync(FOLDER + name, 'utf8')) as Record<string, unknown>;
    documents.set(name, document);
    ajv.addSchema(document, `${BASE}${name}` === document.$id ? undefined : `${BASE}${name}`);
  }
  const payloads = documents.get('run-event-payloads.schema.json') as {
    $defs: { _typeIndex: { properties: Record<string, { $ref: string }> } };
  };
  const index = payloads.$defs._typeIndex.properties;
  const check = once((name) => {
    const [file, part = ''] = name.split('#');
    return checkBy(ajv.compile({ $ref: `${BASE}${file}.schema.json${part && `#${part}`}` }));
  });
  return {
    check,
    payload: (type) => (Object.hasOwn(index, type) ? check(`run-event-payloads${index[type]!.$ref}`) : undefined),
  };
}
