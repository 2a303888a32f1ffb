import { Type } from 'typebox';
import { type JsonObject, own } from '../../../protocol/format/json.ts';
import { BadJson, parseJson } from '../../../protocol/format/parse-json.ts';
import { invalid, type NodeType, type Outcome } from '../../../runtime/node-type.ts';
import { UnusableSchema } from '../../../runtime/validation/schema-validator.ts';
import { ITEMS_MAX } from './arrays.ts';
import { parseCsv, writeCsv } from './csv.ts';

/** Parses JSON text. */
const jsonParse: NodeType = {
  typeId: 'core.openwop.data.json-parse',
  description: 'Parses JSON.',
  inputs: ['text'],
  requiredInputs: ['text'],
  outputs: () => ['value', 'error'],
  role: 'pure',
  config: Type.Object({ failOnError: Type.Optional(Type.Boolean({ default: true })) }),
  run: ({ config, inputs: { text } }): Outcome => {
    if (typeof text !== 'string') return invalid('The input `text` must be a string.');
    try {
      return { done: { outputs: { value: parseJson(text, 'text') ?? null, error: null } } };
    } catch (error) {
      if (!(error instanceof BadJson)) throw error;
      if (config.failOnError !== false) return invalid(error.message);
      return { done: { outputs: { value: null, error: error.message } } };
    }
  },
};

/** Formats a value as JSON text. */
const jsonStringify: NodeType = {
  typeId: 'core.openwop.data.json-stringify',
  description: 'Formats a value as JSON.',
  inputs: ['value'],
  outputs: () => ['text'],
  role: 'pure',
  config: Type.Object({ indent: Type.Optional(Type.Integer({ minimum: 0, maximum: 10 })) }),
  run: ({ config, inputs: { value = null }, budget }) => {
    const indent = config.indent as number | undefined;
    budget.takeJson(value, indent);
    return { done: { outputs: { text: JSON.stringify(value, null, indent) } } };
  },
};

/** Validates a value against a JSON Schema (2020-12). */
const jsonSchemaValidate: NodeType = {
  typeId: 'core.openwop.data.json-schema-validate',
  description: 'Validates a value with a JSON Schema.',
  inputs: ['value', 'schema'],
  requiredInputs: ['schema'],
  outputs: () => ['valid', 'errors'],
  role: 'pure',
  async run({ inputs: { value = null, schema }, schemas }): Promise<Outcome> {
    try {
      const errors = await schemas.validate(schema, value);
      return { done: { outputs: { valid: errors.length === 0, errors: [...errors] } } };
    } catch (error) {
      if (!(error instanceof UnusableSchema)) throw error;
      return invalid(`The input \`schema\` is not usable: ${error.message}.`);
    }
  },
};

/** Parses CSV text. Rows are objects with the names of the header row, or arrays if there is none. */
const csvParse: NodeType = {
  typeId: 'core.openwop.data.csv-parse',
  description: 'Parses comma-separated values.',
  inputs: ['text'],
  requiredInputs: ['text'],
  outputs: () => ['rows', 'headers'],
  role: 'pure',
  config: Type.Object({ hasHeader: Type.Optional(Type.Boolean({ default: true })) }),
  run: ({ config, inputs: { text }, budget }): Outcome => {
    if (typeof text !== 'string') return invalid('The input `text` must be a string.');
    const parsed = parseCsv(text, ITEMS_MAX);
    if ('problem' in parsed) return invalid(parsed.problem);
    if (config.hasHeader === false) return { done: { outputs: { rows: parsed.rows, headers: [] } } };
    const [headers = [], ...rows] = parsed.rows;
    // Few characters of text can be many rows of many columns.
    for (const _row of rows) budget.takeJson(headers);
    return { done: { outputs: { headers, rows: rows.map((row) => named(headers, row)) } } };
  },
};

function named(headers: readonly string[], row: readonly string[]): JsonObject {
  return Object.fromEntries(headers.map((header, column) => [header, row[column] ?? '']));
}

/** Formats rows as CSV text. */
const csvStringify: NodeType = {
  typeId: 'core.openwop.data.csv-stringify',
  description: 'Formats rows as comma-separated values.',
  inputs: ['rows', 'headers'],
  requiredInputs: ['rows'],
  outputs: () => ['text'],
  role: 'pure',
  config: Type.Object({ includeHeader: Type.Optional(Type.Boolean({ default: true })) }),
  run: ({ config, inputs: { rows, headers }, budget }): Outcome => {
    if (!Array.isArray(rows)) return invalid('The input `rows` must be an array.');
    const names = Array.isArray(headers) ? headers.map(String) : namesIn(rows);
    const cells = rows.map((row: unknown) => {
      budget.take(names.length);
      budget.takeJson(row);
      return Array.isArray(row) ? row : names.map((name) => own(Object(row), name));
    });
    const hasHeader = config.includeHeader !== false && names.length > 0;
    return { done: { outputs: { text: writeCsv(hasHeader ? [names, ...cells] : cells) } } };
  },
};

/** The member names of all rows, in the order of their first occurrence. */
function namesIn(rows: readonly unknown[]): string[] {
  return [...new Set(rows.flatMap((row) => (Array.isArray(row) ? [] : Object.keys(Object(row)))))];
}

/** Node types that parse and format text. */
export const TEXT_NODES: readonly NodeType[] = [jsonParse, jsonStringify, jsonSchemaValidate, csvParse, csvStringify];
