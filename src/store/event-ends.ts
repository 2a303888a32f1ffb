import type { EventType } from '../protocol/running/events.ts';
import { type Param, placeholders, type Statement } from './sql.ts';

/** Where the texts of an event end, without the payload before that. */
export interface EventEnds {
  readonly run_id: string;
  readonly sequence: number;
  readonly type: EventType;
  readonly body_end: string;
  readonly hidden_end: string | null;
  /** The length of the whole texts, which the store has read. */
  readonly characters: number;
}

/** Enough for the members of an envelope after the payload, and for most node ids that do not fit into one. */
const BODY_END_CHARACTERS = 1_200;
const HIDDEN_END_CHARACTERS = 4_000;

/** The ends of events of some types of some runs, the newest first, before a place in that order, as EventEnds. */
export function findEventEnds(
  runIds: readonly string[],
  types: readonly EventType[],
  { before, limit }: { readonly before: Pick<EventEnds, 'run_id' | 'sequence'> | undefined; readonly limit: number },
): Statement {
  const params: Param[] = [...runIds, ...types];
  const among = placeholders(1, runIds.length);
  const wanted = placeholders(1, types.length, runIds.length + 1);
  const place = before
    ? `AND (run_id, sequence) < ($${params.push(before.run_id)}, $${params.push(before.sequence)})`
    : '';
  return {
    sql: `SELECT run_id, sequence, type, ${endOf('body', BODY_END_CHARACTERS)} AS body_end,
            ${endOf('hidden', HIDDEN_END_CHARACTERS)} AS hidden_end,
            LENGTH(body) + COALESCE(LENGTH(hidden), 0) AS characters
          FROM events WHERE run_id IN ${among} AND type IN ${wanted} ${place}
          ORDER BY run_id DESC, sequence DESC LIMIT $${params.push(limit)}`,
    params,
  };
}

function endOf(column: string, characters: number): string {
  const length = `LENGTH(${column})`;
  return `SUBSTR(${column}, CASE WHEN ${length} > ${characters} THEN ${length} - ${characters} + 1 ELSE 1 END)`;
}
