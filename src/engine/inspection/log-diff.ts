import { canonicalJson, isObject } from '../../protocol/format/json.ts';

/** An event as far as comparing goes; `body` is the whole of it, as every reader gets it. */
export interface ComparedEvent {
  readonly type: string;
  readonly body: string;
}

/** `added` stands in the second log alone, `removed` in the first alone. */
export type DiffOp = 'added' | 'removed' | 'changed';

export interface EventDiff {
  readonly seq: number;
  readonly op: DiffOp;
  readonly a?: ComparedEvent | undefined;
  readonly b?: ComparedEvent | undefined;
}

export interface DiffBounds {
  readonly diffsMax: number;
  readonly charactersMax: number;
}

/**
 * Two logs, compared place by place as they are read. Where they first differ is always found; of the differences
 * themselves only so many are kept.
 */
export class LogDiff {
  readonly diffs: EventDiff[] = [];
  divergedAtSeq: number | null = null;
  /** There were more differences than are kept. */
  isCut = false;
  readonly #bounds: DiffBounds;
  #characters = 0;

  constructor(bounds: DiffBounds) {
    this.#bounds = bounds;
  }

  /** What stands at a sequence in each log; nothing where a log has ended. */
  add(seq: number, a: ComparedEvent | undefined, b: ComparedEvent | undefined): void {
    if (this.isCut) return;
    const op = compareEvents(a, b);
    if (!op) return;
    this.divergedAtSeq ??= seq;
    this.#characters += (a?.body.length ?? 0) + (b?.body.length ?? 0);
    const isFirst = this.diffs.length === 0;
    const fits = this.diffs.length < this.#bounds.diffsMax && this.#characters <= this.#bounds.charactersMax;
    if (isFirst || fits) this.diffs.push({ seq, op, a, b });
    else this.isCut = true;
  }
}

/** How two events at the same place differ, if they do. */
export function compareEvents(a: ComparedEvent | undefined, b: ComparedEvent | undefined): DiffOp | undefined {
  if (!a || !b) return a ? 'removed' : b ? 'added' : undefined;
  if (a.body === b.body) return undefined;
  return a.type === b.type && essenceOf(a) === essenceOf(b) ? undefined : 'changed';
}

/** Members of a payload that say which run this is, when it happened or how it was reached; not what happened. */
const CIRCUMSTANCES: readonly string[] = [
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

/** The payload of an event, without what differs between any two runs. What nodes put in stays whole. */
function essenceOf({ body }: ComparedEvent): string {
  const { payload } = JSON.parse(body) as { payload: unknown };
  if (!isObject(payload)) return canonicalJson(payload);
  const members = Object.entries(payload).filter(([name]) => !CIRCUMSTANCES.includes(name));
  return canonicalJson(Object.fromEntries(members));
}
