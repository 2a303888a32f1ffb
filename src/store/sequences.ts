import { placeholders, type Statement, sql } from './sql.ts';

/**
 * How far runs are, for followers who were let in. The ids are padded to a power of two, so that there are few texts to
 * prepare.
 */
export function findSequences(runIds: readonly string[]): Statement {
  const size = 2 ** Math.ceil(Math.log2(Math.max(1, runIds.length)));
  const padded = Array.from({ length: size }, (_, index) => runIds[index] ?? runIds.at(-1) ?? '');
  return sql(`SELECT run_id, sequence FROM runs WHERE run_id IN ${placeholders(1, size)}`, ...padded);
}
