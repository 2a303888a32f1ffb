import { type Refusal, refuse } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { BadJson, parseJson } from '../../../protocol/format/parse-json.ts';
import type { TriggerScheme } from '../../../protocol/starting/triggers.ts';

const FORM = /^application\/x-www-form-urlencoded\b/i;
const JSON_TYPE = /^application\/([\w.-]+\+)?json\b/i;
/** Senders that put their JSON into a field of a form, if they are set up that way. */
const IN_A_FIELD: readonly TriggerScheme[] = ['github', 'slack'];
const FIELD = 'payload';
/** Senders stay far below this, and Node's parser of forms takes quadratic time. */
const FIELDS_MAX = 10_000;
/** Headers that may be credentials. */
const WITHHELD = ['authorization', 'cookie', 'proxy-authorization'];

/** The body of a request as a value: JSON, the fields of a form, or else text. */
export function payloadOf(scheme: TriggerScheme, type: string, bytes: Uint8Array): { body: unknown } | Refusal {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  try {
    if (JSON_TYPE.test(type)) return { body: parseJson(text) ?? null };
    if (!FORM.test(type)) return { body: text };
    if (hasMoreFields(text, FIELDS_MAX)) {
      return refuse('validation_error', `A form has at most ${FIELDS_MAX} fields.`, { field: 'body' });
    }
    const form = new URLSearchParams(text);
    const inner = IN_A_FIELD.includes(scheme) ? form.get(FIELD) : null;
    return { body: inner === null ? fieldsOf(form) : parseJson(inner, FIELD) };
  } catch (error) {
    if (error instanceof BadJson) return refuse('validation_error', error.message, { field: 'body' });
    throw error;
  }
}

/** Whether a form has more fields than that, without parsing it. */
function hasMoreFields(text: string, max: number): boolean {
  let fields = 1;
  for (let at = text.indexOf('&'); at >= 0 && fields <= max; at = text.indexOf('&', at + 1)) fields++;
  return fields > max;
}

/** The fields of a form as an object. A field that occurs more than once is a list. Each field is read once. */
export function fieldsOf(form: Iterable<readonly [string, string]>): JsonObject {
  const fields = Map.groupBy(form, ([name]) => name);
  return Object.fromEntries(
    [...fields].map(([name, found]) => [name, found.length === 1 ? found[0]![1] : found.map(([, value]) => value)]),
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
