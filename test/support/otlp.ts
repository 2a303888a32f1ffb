import type { CollectedSpan } from './collector.ts';

/** OTLP as it is on the wire, read without the packages that wrote it. */

// biome-ignore lint/suspicious/noExplicitAny: messages of many shapes
type Message = any;

/** What a field holds: a message by its table, or a scalar. `*` marks a list. */
type Shape = Fields | 'text' | 'hex' | 'number' | 'bool' | 'double' | 'fixed64';
interface Fields {
  readonly [number: number]: readonly [name: string, shape: Shape | (() => Shape), isList?: '*'];
}

const ANY: Fields = {
  1: ['stringValue', 'text'],
  2: ['boolValue', 'bool'],
  3: ['intValue', 'number'],
  4: ['doubleValue', 'double'],
  5: ['arrayValue', () => ({ 1: ['values', ANY, '*'] })],
};
const PAIR: Fields = { 1: ['key', 'text'], 2: ['value', ANY] };
const LINK: Fields = { 1: ['traceId', 'hex'], 2: ['spanId', 'hex'] };
const SPAN: Fields = {
  1: ['traceId', 'hex'],
  2: ['spanId', 'hex'],
  4: ['parentSpanId', 'hex'],
  5: ['name', 'text'],
  6: ['kind', 'number'],
  7: ['startTimeUnixNano', 'fixed64'],
  8: ['endTimeUnixNano', 'fixed64'],
  9: ['attributes', PAIR, '*'],
  13: ['links', LINK, '*'],
  15: ['status', { 2: ['message', 'text'], 3: ['code', 'number'] }],
};
const REQUEST: Fields = {
  1: [
    'resourceSpans',
    {
      1: ['resource', { 1: ['attributes', PAIR, '*'] }],
      2: ['scopeSpans', { 2: ['spans', SPAN, '*'] }, '*'],
    },
    '*',
  ],
};

/** The spans of an export, as JSON or as protobuf. */
export function decodeTraces(body: Buffer, contentType: string): CollectedSpan[] {
  const isJson = contentType === 'application/json';
  if (!isJson && contentType !== 'application/x-protobuf') throw new Error(`unknown content type ${contentType}`);
  const { resourceSpans }: Message = isJson ? JSON.parse(body.toString('utf8')) : decode(body, REQUEST);
  return resourceSpans.flatMap(({ resource, scopeSpans }: Message) =>
    scopeSpans.flatMap(({ spans }: Message) =>
      spans.map((span: Message) => ({
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? '',
        name: span.name,
        kind: span.kind,
        status: span.status?.code ?? 0,
        message: span.status?.message ?? '',
        startMs: Number(BigInt(span.startTimeUnixNano) / 1_000_000n),
        endMs: Number(BigInt(span.endTimeUnixNano) / 1_000_000n),
        attributes: valuesOf(span.attributes),
        links: (span.links ?? []).map(({ traceId, spanId }: Message) => ({ traceId, spanId })),
        resource: valuesOf(resource.attributes),
      })),
    ),
  );
}

function valuesOf(pairs: Message = []): Record<string, unknown> {
  return Object.fromEntries(pairs.map(({ key, value }: Message) => [key, scalarIn(value)]));
}

function scalarIn({ arrayValue, ...scalar }: Message): unknown {
  return arrayValue ? arrayValue.values.map(scalarIn) : Object.values(scalar)[0];
}

function decode(bytes: Buffer, fields: Fields): Message {
  const message: Message = {};
  for (let at = 0; at < bytes.length; ) {
    const key = varint(bytes, at);
    const { value, end } = wireValue(bytes, key.end, Number(key.value & 7n));
    at = end;
    const field = fields[Number(key.value >> 3n)];
    if (!field) continue;
    const [name, shape, isList] = field;
    const read = scalarOf(value, typeof shape === 'function' ? shape() : shape);
    message[name] = isList ? [...(message[name] ?? []), read] : read;
  }
  return message;
}

function scalarOf(value: bigint | Buffer, shape: Shape): unknown {
  if (typeof value === 'bigint') return shape === 'bool' ? value === 1n : Number(value);
  if (shape === 'text') return value.toString('utf8');
  if (shape === 'hex') return value.toString('hex');
  if (shape === 'double') return value.readDoubleLE();
  if (shape === 'fixed64') return value.readBigUInt64LE();
  return decode(value, shape as Fields);
}

/** A value by the wire type of its key: varint, eight bytes, a length with bytes, four bytes. */
function wireValue(bytes: Buffer, at: number, wireType: number): { value: bigint | Buffer; end: number } {
  if (wireType === 0) return varint(bytes, at);
  const head = wireType === 2 ? varint(bytes, at) : undefined;
  const start = head?.end ?? at;
  const end = start + (head ? Number(head.value) : wireType === 1 ? 8 : 4);
  return { value: bytes.subarray(start, end), end };
}

function varint(bytes: Buffer, at: number): { value: bigint; end: number } {
  let value = 0n;
  for (let index = at; ; index++) {
    const byte = bytes[index]!;
    value |= BigInt(byte & 0x7f) << BigInt(7 * (index - at));
    if (byte < 0x80) return { value, end: index + 1 };
  }
}
