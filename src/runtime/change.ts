import { isRefusal, type Refusal, refuse } from '../protocol/errors.ts';
import type { Unit } from '../store/sql.ts';
import type { Store } from '../store/store.ts';
import type { KeyedMutex } from './keyed-mutex.ts';

/**
 * The one way to change stored state. A service reads, decides and returns a `Change`; `perform` commits it.
 *
 * C1. Everything a change writes is one unit: all of it is committed, or none of it.
 * C2. Nothing is announced before the commit.
 * C3. A decision that another writer made obsolete is taken again from what is stored now, at most CONFLICTS_MAX times.
 */
export interface Change<T = void> {
  /** The writes, committed together. */
  readonly writes: Unit;
  /** What the caller gets once the writes are committed. */
  readonly result: T;
  /** Called in order after the commit: wakes workers, streams and other hosts. */
  readonly announce: readonly (() => void)[];
  /** Expectations whose failure means that the decision is out of date, so it is taken again. */
  readonly retryOn: readonly string[];
  /** Expectations whose failure is an answer to the caller, such as a limit that is used up. */
  readonly refusals: Readonly<Record<string, Refusal | (() => Promise<Refusal>)>>;
  /** Set when the writes only record that the request was refused: the caller gets this instead of the result. */
  readonly refusal?: Refusal;
}

/** The parts of a change that have a default. */
type ChangeOptions = Partial<Pick<Change, 'announce' | 'retryOn' | 'refusals'>>;

/** Reads the current state and decides on a change, or refuses. It is called again after a conflict, and when it gives OUTDATED. */
export type Decide<T> = () => Promise<Change<T> | Refusal>;

/** A change that writes a unit and gives a result. */
export function changeOf<T>(result: T, writes: Unit, options: ChangeOptions = {}): Change<T> {
  return { writes, result, announce: [], retryOn: [], refusals: {}, ...options };
}

/** A change that writes nothing: the state already is as asked. */
export function unchanged<T>(result: T): Change<T> {
  return changeOf(result, []);
}

/**
 * One change made of several, committed as one unit, with the result of the first. A first part that only records a
 * refusal stays alone: the others belong to what was refused.
 */
export function and<T>(first: Change<T>, ...others: readonly Change<unknown>[]): Change<T> {
  if (first.refusal) return first;
  const all = [first, ...others];
  return {
    writes: all.flatMap(({ writes }) => writes),
    result: first.result,
    announce: all.flatMap(({ announce }) => announce),
    retryOn: all.flatMap(({ retryOn }) => retryOn),
    refusals: Object.assign({}, ...all.map(({ refusals }) => refusals)),
  };
}

/** The same change with another result. */
export function withResult<T, R>(change: Change<T>, result: (before: T) => R): Change<R> {
  return { ...change, result: result(change.result) };
}

/** A unit was refused for a reason that whoever built it does not handle. */
export class UnitRefused extends Error {
  override readonly name = 'UnitRefused';
  /** The expectation that did not hold. */
  readonly failedExpectation: string;

  constructor(failedExpectation: string) {
    super(`expectation failed: ${failedExpectation}`);
    this.failedExpectation = failedExpectation;
  }
}

/** Every conflict is a commit that succeeded elsewhere, so this many in a row mean heavy contention on one resource. */
const CONFLICTS_MAX = 20;

/**
 * The decision is out of date: `perform` takes it again, and answers with this if it is so too often. `Retry-After` keeps
 * the answer out of the idempotency records: nothing was changed, and a retry is a new attempt.
 */
export const OUTDATED: Refusal = {
  ...refuse('conflict', 'Other requests keep changing this resource. Try again.'),
  headers: { 'Retry-After': '1' },
};

/** How a change is performed. */
interface PerformOptions<T> {
  /** Changes with the same key wait for each other on this host, which saves decisions that would be out of date. */
  readonly mutexKey?: string | undefined;
  /** Added to the unit: the idempotency record of the answer that the result becomes. */
  readonly record?: ((result: T) => Unit) | undefined;
  /** Whose share of the store's time it takes; the host's own if omitted. */
  readonly tenant?: string | undefined;
}

/** Decides, commits and announces; decides again after a conflict. */
export function perform<T>(
  { store, mutex }: { readonly store: Store; readonly mutex: KeyedMutex },
  decide: Decide<T>,
  { mutexKey, ...options }: PerformOptions<T> = {},
): Promise<T | Refusal> {
  const attempt = () => performUntilCommitted(store, decide, options);
  return mutexKey === undefined ? attempt() : mutex.runExclusive(mutexKey, attempt);
}

async function performUntilCommitted<T>(
  store: Store,
  decide: Decide<T>,
  options: PerformOptions<T>,
): Promise<T | Refusal> {
  for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts++) {
    const change = await decide();
    const outcome = isRefusal(change) ? change : await commitChange(store, change, options);
    if (outcome !== OUTDATED) return outcome;
  }
  return OUTDATED;
}

async function commitChange<T>(
  store: Store,
  change: Change<T>,
  { record, tenant }: PerformOptions<T>,
): Promise<T | Refusal> {
  const { result, announce, retryOn, refusals, refusal } = change;
  const writes = record && !refusal ? [...change.writes, ...record(result)] : change.writes;
  const failed = await commitOnce(store, { writes, announce }, tenant);
  if (failed === undefined) return refusal ?? result;
  if (retryOn.includes(failed)) return OUTDATED;
  const answer = refusals[failed];
  if (answer) return typeof answer === 'function' ? answer() : answer;
  throw new UnitRefused(failed);
}

/**
 * Commits a change and announces it, or names the expectation that failed. For a writer that holds state of its own, such
 * as the drive of a run, and resolves conflicts by reading that again; everybody else calls `perform`.
 */
export async function commitOnce(
  store: Store,
  { writes, announce }: Pick<Change, 'writes' | 'announce'>,
  tenant?: string,
): Promise<string | undefined> {
  if (writes.length > 0) {
    const outcome = await store.commit(writes, { tenant });
    if (!outcome.committed) return outcome.failedExpectation;
  }
  for (const tell of announce) tell();
  return undefined;
}

/** Commits a unit whose expectations cannot fail, such as housekeeping; throws UnitRefused if one does. */
export async function commitOrThrow(store: Store, unit: Unit): Promise<void> {
  const failed = await commitOnce(store, changeOf(undefined, unit));
  if (failed !== undefined) throw new UnitRefused(failed);
}
