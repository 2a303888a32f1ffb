import { type Refusal, refuse } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { BadJson, parseJson } from '../../../protocol/format/parse-json.ts';
import type { TriggerScheme } from '../../../protocol/starting/triggers.ts';

const FORM = /^application\/x-www-form-urlencoded\b/i;
const JSON_TYPE = /^application\/([\w.-]+\+)?json\b/i;
/** Senders that put their JSON into a field of a form, if they are set up that way. */
const IN_A_FIELD: readonly TriggerScheme[] = ['github', 'slack'];
const FIELD = 'payload';
/** Headers that may be credentials. */
const WITHHELD = ['authorization', 'cookie', 'proxy-authorization'];

/** The body of a request as a value: JSON, the fields of a form, or else text. */
export function payloadOf(scheme: TriggerScheme, type: string, bytes: Uint8Array): { body: unknown } | Refusal {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  try {
    if (JSON_TYPE.test(type)) return { body: parseJson(text) ?? null };
    if (!FORM.test(type)) return { body: text };
    const form = new URLSearchParams(text);
    const inner = IN_A_FIELD.includes(scheme) ? form.get(FIELD) : null;
    return { body: inner === null ? fieldsOf(form) : parseJson(inner, FIELD) };
  } catch (error) {
    if (error instanceof BadJson) return refuse('validation_error', error.message, { field: 'body' });
    throw error;
  }
}

/** A field that occurs more than once is a list. */
function fieldsOf(form: URLSearchParams): JsonObject {
  const names = new Set(form.keys());
  return Object.fromEntries(
    [...names].map((name) => {
      const values = form.getAll(name);
      return [name, values.length === 1 ? values[0] : values];
    }),
  );
}

/** The headers that expressions may read: one text each, and nothing that could be a credential. */
export function readableHeaders(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
  withheld: readonly string[],
): Readonly<Record<string, string>> {
  const left = [...WITHHELD, ...withheld];
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || left.includes(name) ? [] : [[name, typeof value === 'string' ? value : value.join(', ')]],
    ),
  );
}
