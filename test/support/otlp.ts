import type { CollectedMetric, CollectedSpan } from './collector.ts';

/** OTLP as it is on the wire, read without the packages that wrote it. */

// biome-ignore lint/suspicious/noExplicitAny: messages of many shapes
type Message = any;

/** What a field holds: a message by its table, or a scalar. `*` marks a list. */
type Shape = Fields | 'text' | 'hex' | 'number' | 'bool' | 'double' | 'doubles' | 'fixed64' | 'fixed64s';
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

const NUMBER_POINT: Fields = {
  2: ['startTimeUnixNano', 'fixed64'],
  3: ['timeUnixNano', 'fixed64'],
  4: ['asDouble', 'double'],
  7: ['attributes', PAIR, '*'],
};
const HISTOGRAM_POINT: Fields = {
  2: ['startTimeUnixNano', 'fixed64'],
  3: ['timeUnixNano', 'fixed64'],
  4: ['count', 'fixed64'],
  5: ['sum', 'double'],
  6: ['bucketCounts', 'fixed64s'],
  7: ['explicitBounds', 'doubles'],
  9: ['attributes', PAIR, '*'],
};
const METRIC: Fields = {
  1: ['name', 'text'],
  3: ['unit', 'text'],
  5: ['gauge', { 1: ['dataPoints', NUMBER_POINT, '*'] }],
  7: [
    'sum',
    { 1: ['dataPoints', NUMBER_POINT, '*'], 2: ['aggregationTemporality', 'number'], 3: ['isMonotonic', 'bool'] },
  ],
  9: ['histogram', { 1: ['dataPoints', HISTOGRAM_POINT, '*'], 2: ['aggregationTemporality', 'number'] }],
};
const METRICS_REQUEST: Fields = {
  1: [
    'resourceMetrics',
    {
      1: ['resource', { 1: ['attributes', PAIR, '*'] }],
      2: ['scopeMetrics', { 2: ['metrics', METRIC, '*'] }, '*'],
    },
    '*',
  ],
};

function messageIn(body: Buffer, contentType: string, fields: Fields): Message {
  const isJson = contentType === 'application/json';
  if (!isJson && contentType !== 'application/x-protobuf') throw new Error(`unknown content type ${contentType}`);
  return isJson ? JSON.parse(body.toString('utf8')) : decode(body, fields);
}

/** The series of the metrics of an export, as JSON or as protobuf. */
export function decodeMetrics(body: Buffer, contentType: string): CollectedMetric[] {
  const { resourceMetrics }: Message = messageIn(body, contentType, METRICS_REQUEST);
  return resourceMetrics.flatMap(({ resource, scopeMetrics }: Message) =>
    scopeMetrics.flatMap(({ metrics }: Message) =>
      metrics.flatMap(({ name, unit, gauge, sum, histogram }: Message) => {
        const kind = gauge ? 'gauge' : sum ? 'counter' : 'histogram';
        const { dataPoints = [], aggregationTemporality = 2, isMonotonic = true } = gauge ?? sum ?? histogram;
        if (aggregationTemporality !== 2 || !isMonotonic) throw new Error(`${name} is not counted from the start`);
        return dataPoints.map((point: Message) => ({
          name,
          kind,
          unit: unit ?? '',
          attributes: valuesOf(point.attributes),
          value: histogram ? Number(point.count) : (point.asDouble ?? 0),
          ...(histogram
            ? { sum: point.sum, counts: point.bucketCounts.map(Number), bounds: point.explicitBounds }
            : {}),
          resource: valuesOf(resource.attributes),
        }));
      }),
    ),
  );
}

/** The spans of an export, as JSON or as protobuf. */
export function decodeTraces(body: Buffer, contentType: string): CollectedSpan[] {
  const { resourceSpans }: Message = messageIn(body, contentType, REQUEST);
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
  if (shape === 'doubles') return eights(value).map((each) => each.readDoubleLE());
  if (shape === 'fixed64s') return eights(value).map((each) => each.readBigUInt64LE());
  return decode(value, shape as Fields);
}

/** The parts of a packed list. */
function eights(value: Buffer): Buffer[] {
  return Array.from({ length: value.length / 8 }, (_, index) => value.subarray(index * 8, index * 8 + 8));
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
