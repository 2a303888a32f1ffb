import type { Delivery, History, Operation, ReadEvent } from './history.ts';

const ENDS: Readonly<Record<string, string>> = {
  'run.completed': 'completed',
  'run.failed': 'failed',
  'run.cancelled': 'cancelled',
};
const isEnd = (type: string): boolean => type in ENDS;
const isOtherEnd = (status: string): boolean => status === 'completed' || status === 'failed';

/**
 * What in a history contradicts the protocol's model; nothing if it is consistent.
 *
 * The model of a run is a list that grows at its end: creating makes it, cancelling appends to it, reading gives all of
 * it. A history of such a list is linearizable exactly if each read is a prefix of what is there in the end, no read is
 * shorter than one that was answered before it was asked, what was acknowledged is in every later read, and nothing is
 * in a read that was answered before it was asked for. So the check needs no search.
 */
export function problemsWith(history: History): string[] {
  return [
    ...problemsWithKeys(history),
    ...[...history.logs].flatMap(([runId, log]) =>
      [
        ...problemsWithLog(log),
        ...problemsWithReads(operationsOn(history, runId), log),
        ...problemsWithCancelling(operationsOn(history, runId), log),
        ...problemsWithDeliveries(history, runId, log),
      ].map((problem) => `${runId}: ${problem}`),
    ),
    ...problemsWithSlots(history),
  ];
}

/** Operations on one run that were answered. */
function operationsOn({ operations }: History, runId: string): Operation[] {
  return operations.filter((operation) => operation.runId === runId);
}

/** One key is one run, whoever is asked how often; what was acknowledged is there. */
function problemsWithKeys({ operations, runsByKey, logs }: History): string[] {
  const creations = operations.filter(({ what }) => what === 'create');
  return [...Map.groupBy(creations, ({ key }) => key!)].flatMap(([key, asked]) => {
    const told = new Set(asked.filter(({ status }) => status === 201).map(({ body }) => body.runId as string));
    const made = runsByKey.get(key) ?? [];
    return [
      ...(told.size > 1 ? [`${key}: ${told.size} runs were acknowledged`] : []),
      ...(made.length > 1 ? [`${key}: ${made.length} runs were made`] : []),
      ...[...told]
        .filter((runId) => !made.includes(runId) || !logs.has(runId))
        .map((runId) => `${key}: ${runId} is gone`),
    ];
  });
}

function problemsWithLog(log: readonly ReadEvent[]): string[] {
  const ends = log.filter(({ type }) => isEnd(type));
  return [
    ...(log.every(({ sequence }, index) => sequence === index) ? [] : ['the log has gaps']),
    ...(log[0]?.type === 'run.started' ? [] : ['the log does not begin with run.started']),
    ...(ends.length === 1 && isEnd(log.at(-1)!.type) ? [] : [`${ends.length} endings, or not last`]),
  ];
}

/** How far the run had come at least, as an answer shows. */
function seenBy({ what, status, body }: Operation, log: readonly ReadEvent[]): number {
  if (status !== 200) return 0;
  if (what === 'events') return body.events.length;
  return what === 'snapshot' && Object.values(ENDS).includes(body.status) ? log.length : 0;
}

function problemsWithReads(operations: readonly Operation[], log: readonly ReadEvent[]): string[] {
  const reads = operations.filter(({ what, to }) => (what === 'events' || what === 'snapshot') && to !== undefined);
  return reads.flatMap((read) => {
    if (read.status === 404) return ['a run that was acknowledged is not found'];
    if (read.status !== 200) return [];
    const before = reads.filter(({ to }) => to! < read.from).map((other) => seenBy(other, log));
    const known = Math.max(0, ...before);
    if (read.what === 'snapshot') return problemsWithSnapshot(read, known === log.length, log);
    const events = read.body.events as ReadEvent[];
    return [
      ...(events.every(({ eventId }, index) => eventId === log[index]?.eventId)
        ? []
        : ['a read is no part of the log']),
      ...(events.length < known ? [`a read shows ${events.length} events after one that showed ${known}`] : []),
    ];
  });
}

function problemsWithSnapshot({ body }: Operation, isOver: boolean, log: readonly ReadEvent[]): string[] {
  const end = ENDS[log.at(-1)!.type];
  const hasEnded = Object.values(ENDS).includes(body.status);
  if (hasEnded && body.status !== end) return [`a snapshot says ${body.status}, and the run ends ${end}`];
  return isOver && !hasEnded ? [`a snapshot says ${body.status} after the end was seen`] : [];
}

/** A cancellation that was acknowledged is the end, and none is seen before it was asked for. */
function problemsWithCancelling(operations: readonly Operation[], log: readonly ReadEvent[]): string[] {
  const cancels = operations.filter(({ what }) => what === 'cancel');
  const isCancelled = log.at(-1)?.type === 'run.cancelled';
  // One that comes too late is told how the run has ended.
  const acknowledged = cancels.filter(({ status, body }) => status === 200 && !isOtherEnd(body.status));
  const late = cancels.filter(({ status, body }) => status === 200 && isOtherEnd(body.status));
  const firstAsked = Math.min(...cancels.map(({ from }) => from), Number.POSITIVE_INFINITY);
  const firstTold = Math.min(...acknowledged.map(({ to }) => to!), Number.POSITIVE_INFINITY);
  const reads = operations.filter(({ what, status }) => what === 'events' && status === 200);
  const shows = ({ body }: Operation): boolean => body.events.some(({ type }: ReadEvent) => type === 'run.cancelled');
  return [
    ...(acknowledged.length > 0 && !isCancelled ? ['a cancellation was acknowledged, and it ended otherwise'] : []),
    ...(late.some(({ body }) => body.status !== ENDS[log.at(-1)!.type])
      ? ['a late cancellation is told another end']
      : []),
    ...(reads.some((read) => read.to! < firstAsked && shows(read)) ? ['it was cancelled before anybody asked'] : []),
    ...(reads.some((read) => read.from > firstTold && !shows(read))
      ? ['an acknowledged cancellation is not seen']
      : []),
  ];
}

/** Every wanted event at least once, under one id, and none before the one before it was taken. */
function problemsWithDeliveries({ deliveries, wanted }: History, runId: string, log: readonly ReadEvent[]): string[] {
  const arrived = deliveries.filter((delivery) => delivery.runId === runId);
  const sequences = log.filter(({ type }) => wanted.includes(type)).map(({ sequence }) => sequence);
  const first = (sequence: number): number => arrived.findIndex((each) => each.sequence === sequence);
  const taken = (sequence: number): number =>
    arrived.findIndex((each) => each.sequence === sequence && each.isAcknowledged);
  const isEarly = (sequence: number, index: number): boolean =>
    index > 0 && first(sequence) >= 0 && first(sequence) < taken(sequences[index - 1]!);
  return [
    ...(sequences.some((sequence) => taken(sequence) < 0) ? ['an event was not delivered'] : []),
    ...(sequences.some(isEarly) ? ['an event was delivered before the one before it'] : []),
    ...(idsOf(arrived) !== new Set(arrived.map(({ sequence }) => sequence)).size
      ? ['an event came under two ids']
      : []),
  ];
}

function idsOf(deliveries: readonly Delivery[]): number {
  return new Set(deliveries.map(({ sequence, deliveryId }) => `${sequence} ${deliveryId}`)).size;
}

/** A slot has one run at most, on the second, and exactly one when nothing was wrong. */
function problemsWithSlots({ slots: { found, everyMs, due } }: History): string[] {
  const known = new Set(found);
  return [
    ...(known.size === found.length ? [] : ['a slot has two runs']),
    ...found.filter((slot) => slot % everyMs !== 0).map((slot) => `${slot} is no slot`),
    ...due.filter((slot) => !known.has(slot)).map((slot) => `the slot ${new Date(slot).toISOString()} has no run`),
  ];
}
