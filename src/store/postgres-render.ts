import { createHash } from 'node:crypto';
import pg from 'pg';
import type { Clock } from '../system/clock.ts';
import type { Link } from './postgres-connections.ts';
import { EXPECT } from './postgres-migrate.ts';
import type { PreparedStatement } from './postgres-pipeline.ts';
import type { Param, Write } from './sql.ts';

const DATABASE_NOW = '(extract(epoch from clock_timestamp()) * 1000)::bigint';
const TRANSACTION = 'pg_current_xact_id()::text::bigint';
const SETTLED = 'pg_snapshot_xmin(pg_current_snapshot())::text::bigint';

/** A statement text with its macros expanded. */
interface Rendered {
  readonly name: string;
  readonly text: string;
  readonly usesNow: boolean;
}

/** Expands the macros of `Statement` and caches the result by its text, and by what is expected of it. */
export class Renderer {
  readonly #link: Pick<Link, 'isPooled'>;
  readonly #ownClock: Clock | undefined;
  readonly #texts = new Map<string, Map<string, Rendered>>();
  /** Part of every name, so that all statements are prepared anew once it is another. */
  #generation = 0;

  constructor(link: Pick<Link, 'isPooled'>, ownClock: Clock | undefined) {
    this.#link = link;
    this.#ownClock = ownClock;
  }

  readonly render = (write: Write): PreparedStatement => {
    const { sql, params, expect, expectation, returns } = write;
    const variants = this.#texts.get(sql) ?? new Map<string, Rendered>();
    this.#texts.set(sql, variants);
    const key = expect === undefined ? '' : `${expect} ${expectation}`;
    const known = variants.get(key) ?? this.#expand(write);
    variants.set(key, known);
    const values = params.map(storable);
    if (this.#ownClock && known.usesNow) values.push(this.#ownClock.now());
    const name = this.#link.isPooled ? '' : `${known.name}-${this.#generation}`;
    return { name, text: known.text, values, returns };
  };

  /** To be called when a prepared statement was refused because a table has changed. */
  prepareAnew(name: string): void {
    if (name.endsWith(`-${this.#generation}`)) this.#generation++;
  }

  #expand({ sql, params, expect, expectation = '' }: Write): Rendered {
    const now = this.#ownClock ? `$${params.length + 1}::bigint` : DATABASE_NOW;
    const expanded = sql
      .replaceAll('$now', now)
      .replaceAll('$skipLocked', 'FOR UPDATE SKIP LOCKED')
      .replaceAll('$transaction', TRANSACTION)
      .replaceAll('$settled', SETTLED)
      .replaceAll('$storeBytes', 'pg_database_size(current_database())');
    const text = expect === undefined ? expanded : demanding(expanded, expect, expectation);
    return { name: createHash('sha1').update(text).digest('hex'), text, usesNow: sql.includes('$now') };
  }
}

/**
 * The statement, failing unless it touches so many rows. PostgreSQL checks this by itself, so that the commit can be
 * sent along and no lock waits for our verdict.
 */
function demanding(text: string, expect: number, expectation: string): string {
  return `WITH touched AS (${text} RETURNING 1)
          SELECT CASE WHEN COUNT(*) <> ${expect} THEN ${EXPECT}(COUNT(*), ${expect}, ${pg.escapeLiteral(expectation)}) END
          FROM touched`;
}

/** Replaces NUL, which PostgreSQL text cannot hold, by U+FFFD, in stored values and in lookups alike. */
function storable(param: Param): Param {
  return typeof param === 'string' && param.includes('\0') ? param.replaceAll('\0', '\ufffd') : param;
}
