import { Blocked } from './group-commit.ts';
import { isNotNow, isOutdatedPlan } from './postgres-errors.ts';
import { EXPECTATION_FAILED, LOCK_NOT_AVAILABLE } from './postgres-migrate.ts';
import { StatementFailed } from './postgres-pipeline.ts';
import { type Check, conditionOf, type Plan, planApart, planTogether } from './postgres-plan.ts';
import type { Renderer } from './postgres-render.ts';
import type { Session } from './postgres-session.ts';
import type { CommitOutcome, Row, Unit, Write } from './sql.ts';
import { StoreFailure } from './store.ts';

/** Serialization failure and deadlock: PostgreSQL asks the client to retry the transaction. */
const RETRYABLE_CODES: readonly unknown[] = ['40001', '40P01'];
const ATTEMPTS_MAX = 5;
/** Units that a group leaves out one by one before each of the others is committed separately too. */
const LEFT_OUT_MAX = 4;
/** Checks of a group that may fail before its units are planned apart. */
const REPLANNED_MAX = 4;
/** Conditions that are remembered. */
const MET_CONDITIONS_MAX = 10_000;
/** Units of a group that may wait for a lock in vain before the others are left for the next one. */
const BLOCKED_PER_GROUP = 2;

/** The connection that writes. After an error it is discarded, and the next group opens a new one. */
export class Writer {
  readonly #session: Session;
  readonly #renderer: Renderer;
  /** Conditions of writes that were found to be met; see `planTogether`. */
  readonly #metConditions = new Set<string>();

  constructor(session: Session, renderer: Renderer) {
    this.#session = session;
    this.#renderer = renderer;
  }

  /**
   * Commits all units in one transaction, which nearly always succeeds. A unit that fails is left out and the others
   * are tried again without it; those that were left out are committed separately at the end, so that only the failing
   * ones are affected.
   */
  async commitGroup(units: readonly Unit[]): Promise<readonly UnitOutcome[]> {
    const outcomes = new Map<number, UnitOutcome>();
    try {
      for (const index of await this.#commitTogether(units, outcomes)) {
        outcomes.set(index, await this.#commitAlone(units[index]!));
      }
    } catch (error) {
      // The connection may have failed before or after the commit; only the database knows.
      await this.close();
      const failure = new StoreFailure('PostgreSQL: the connection failed during a commit.', { cause: error });
      if (outcomes.size === 0) throw failure;
      return units.map((_, index) => outcomes.get(index) ?? failure);
    }
    return units.map((_, index) => outcomes.get(index)!);
  }

  /** Returns the units that are to be committed separately. */
  async #commitTogether(units: readonly Unit[], outcomes: Map<number, UnitOutcome>): Promise<number[]> {
    let together = units.map((_, index) => index);
    const leftOut: number[] = [];
    for (
      let blocked = 0;
      together.length + leftOut.length > 1 && together.length > 0 && leftOut.length < LEFT_OUT_MAX;
    ) {
      const outcome = await this.#transact(together.map((index) => units[index]!));
      if ('rows' in outcome) {
        together.forEach((index, place) => void outcomes.set(index, { committed: true, rows: outcome.rows[place]! }));
        return leftOut;
      }
      const failing = together[outcome.failing]!;
      together = together.filter((index) => index !== failing);
      if (!(outcome.outcome instanceof Blocked)) leftOut.push(failing);
      else outcomes.set(failing, outcome.outcome);
      // Each costs the others the time that a lock is waited for.
      if (outcome.outcome instanceof Blocked && ++blocked === BLOCKED_PER_GROUP) {
        for (const index of together.splice(0)) outcomes.set(index, outcome.outcome);
      }
    }
    return [...together, ...leftOut];
  }

  /** Commits one unit, retrying when PostgreSQL reports a serialization failure or a deadlock. */
  async #commitAlone(unit: Unit): Promise<UnitOutcome> {
    for (let attempts = 1; ; attempts++) {
      const outcome = await this.#transact([unit]);
      if ('rows' in outcome) return { committed: true, rows: outcome.rows[0]! };
      if (!RETRYABLE_CODES.includes(outcome.code) || attempts === ATTEMPTS_MAX) return outcome.outcome;
    }
  }

  async #transact(units: readonly Unit[]): Promise<Transacted> {
    let plan = planTogether(units, this.#metConditions);
    for (let outdated = 0, replanned = 0; ; ) {
      // Whether there are prepared statements depends on what the session leads to.
      await this.#session.open();
      const statements = plan.writes.map(this.#renderer.render);
      try {
        return { rows: rowsOf(plan, units.length, await this.#session.transact(statements)) };
      } catch (error) {
        if (!(error instanceof StatementFailed) || isNotNow(error.cause)) throw error;
        if (isOutdatedPlan(error.cause) && ++outdated < ATTEMPTS_MAX) {
          this.#renderer.prepareAnew(statements[error.index]!.name);
        } else {
          const failing = plan.unitOf[error.index];
          if (failing !== undefined) return failureOf(plan.writes[error.index]!, failing, error);
          const check = error.code === EXPECTATION_FAILED ? plan.checkOf[error.index] : undefined;
          const isLearned = check !== undefined && ++replanned < REPLANNED_MAX && (await this.#learnMet(check));
          // Otherwise a row that the units share is not new, or a lock is taken.
          plan = isLearned ? planTogether(units, this.#metConditions) : planApart(units);
        }
      }
    }
  }

  /** Remembers which conditions of a check are met. False if they cannot be read now. */
  async #learnMet({ find, rows }: Check): Promise<boolean> {
    try {
      const [found] = await this.#session.transact([this.#renderer.render(find)]);
      for (const { tenant } of found!) this.#noteMet(conditionOf(rows, String(tenant)));
      return true;
    } catch (error) {
      if (error instanceof StatementFailed) return false;
      throw error;
    }
  }

  #noteMet(condition: string): void {
    const [oldest = condition] = this.#metConditions;
    if (this.#metConditions.size === MET_CONDITIONS_MAX) this.#metConditions.delete(oldest);
    this.#metConditions.add(condition);
  }

  close(): Promise<void> {
    return this.#session.close();
  }
}

/** What a transaction came to: the rows of each unit, or the unit that failed and how. */
type Transacted =
  | { readonly rows: readonly (readonly (readonly Row[])[])[] }
  | { readonly failing: number; readonly outcome: UnitOutcome; readonly code: string | undefined };

type UnitOutcome = CommitOutcome | Error | Blocked;

/** The rows of each unit, of those of its statements that return any. */
function rowsOf(
  { writes, unitOf }: Plan,
  units: number,
  rows: readonly (readonly Row[])[],
): readonly (readonly (readonly Row[])[])[] {
  const ofUnits: (readonly Row[])[][] = Array.from({ length: units }, () => []);
  writes.forEach(({ returns }, index) => {
    if (returns) ofUnits[unitOf[index]!]!.push(rows[index]!);
  });
  return ofUnits;
}

function failureOf({ expectation = '' }: Write, failing: number, error: StatementFailed): Transacted {
  const { code } = error;
  if (code === EXPECTATION_FAILED) {
    return { failing, outcome: { committed: false, failedExpectation: expectation }, code };
  }
  const failure = new StoreFailure('PostgreSQL: a statement failed.', { cause: error });
  return { failing, outcome: code === LOCK_NOT_AVAILABLE ? new Blocked(failure) : failure, code };
}
