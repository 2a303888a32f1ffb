import { type RunRow, readEvents, type StoredEvent } from './log.ts';
import { coveredBy, logSeal, nextLogDigest } from './log-digest.ts';
import type { Store } from './store.ts';

/** Events that one query reads. */
const EVENTS_PER_PAGE = 1_000;

/** The columns of a run's row that tell what its log must be. */
export type SealedRow = Pick<RunRow, 'run_id' | 'tenant' | 'sequence' | 'log_seal'>;

/** Reads the log of a run and says what is wrong with it; undefined if it is what was written, as far as can be told. */
export async function damageOf(store: Pick<Store, 'read'>, row: SealedRow): Promise<string | undefined> {
  const covered = coveredBy(row.log_seal);
  let digest = '';
  for (let next = 0; next <= row.sequence; ) {
    const limit = Math.min(EVENTS_PER_PAGE, row.sequence + 1 - next);
    const query = readEvents({ tenant: row.tenant, runId: row.run_id }, next - 1, limit);
    const events = await store.read<StoredEvent>(query);
    if (events.length === 0) return `it ends before event ${next}, and should end with ${row.sequence}`;
    for (const event of events) {
      if (event.sequence !== next) return `event ${next} is missing`;
      if (!isJson(event)) return `event ${next} cannot be read`;
      digest = nextLogDigest(digest, event);
      if (next === covered && logSeal(next, digest) !== row.log_seal) return `an event up to ${next} was changed`;
      next += 1;
    }
  }
  return undefined;
}

function isJson({ body, hidden }: StoredEvent): boolean {
  try {
    JSON.parse(body);
    JSON.parse(hidden ?? 'null');
    return true;
  } catch {
    return false;
  }
}
