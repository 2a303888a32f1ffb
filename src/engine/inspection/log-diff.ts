import { canonicalJson, isObject } from '../../protocol/format/json.ts';

/** An event to compare; `body` is the event's JSON text, as every reader gets it. */
export interface ComparedEvent {
  readonly type: string;
  readonly body: string;
}

/** `added` is only in log b, `removed` only in log a. */
type DiffOp = 'added' | 'removed' | 'changed';

/** A difference at one sequence, with the event of each log there. */
export interface EventDiff {
  readonly seq: number;
  readonly op: DiffOp;
  readonly a?: ComparedEvent | undefined;
  readonly b?: ComparedEvent | undefined;
}

/** Limits on how many differences are kept. */
export interface DiffBounds {
  readonly diffsMax: number;
  /** Limit on the total size of the events kept. */
  readonly charactersMax: number;
}

/**
 * Compares two logs by sequence while they are read. The first difference is always found; only a bounded number of
 * differences is kept.
 */
export class LogDiff {
  readonly diffs: EventDiff[] = [];
  /** Sequence of the first difference; null if there is none. */
  divergedAtSeq: number | null = null;
  /** Whether differences were omitted because of the bounds. */
  isTruncated = false;
  readonly #bounds: DiffBounds;
  #characters = 0;

  constructor(bounds: DiffBounds) {
    this.#bounds = bounds;
  }

  /** Compares the events that the logs have at a sequence; undefined for a log that has ended. */
  add(seq: number, a: ComparedEvent | undefined, b: ComparedEvent | undefined): void {
    if (this.isTruncated) return;
    const op = compareEvents(a, b);
    if (!op) return;
    this.divergedAtSeq ??= seq;
    this.#characters += (a?.body.length ?? 0) + (b?.body.length ?? 0);
    const isFirst = this.diffs.length === 0;
    const fits = this.diffs.length < this.#bounds.diffsMax && this.#characters <= this.#bounds.charactersMax;
    if (isFirst || fits) this.diffs.push({ seq, op, a, b });
    else this.isTruncated = true;
  }
}

/** How two events at the same sequence differ; undefined if they are equivalent. */
export function compareEvents(a: ComparedEvent | undefined, b: ComparedEvent | undefined): DiffOp | undefined {
  if (!a || !b) return a ? 'removed' : b ? 'added' : undefined;
  if (a.body === b.body) return undefined;
  return a.type === b.type && comparablePayload(a) === comparablePayload(b) ? undefined : 'changed';
}

/** Payload members that differ between any two runs (ids, times, tracing) and so are not compared. */
const VOLATILE_MEMBERS: readonly string[] = [
  'eventId',
  'runId',
  'causationId',
  'causationHostId',
  'correlationId',
  'timestamp',
  'ts',
  'writtenAt',
  'decidedAt',
  'transport',
  'traceId',
  'traceparent',
  'tracestate',
];

/**
 * The payload as canonical JSON without volatile members. Only top-level members are removed, so data from nodes stays
 * whole.
 */
function comparablePayload({ body }: ComparedEvent): string {
  const { payload } = JSON.parse(body) as { payload: unknown };
  if (!isObject(payload)) return canonicalJson(payload);
  const members = Object.entries(payload).filter(([name]) => !VOLATILE_MEMBERS.includes(name));
  return canonicalJson(Object.fromEntries(members));
}
