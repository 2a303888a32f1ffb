import pg from 'pg';
import type { Clock } from '../system/clock.ts';
import { isOutdatedPlan } from './postgres-errors.ts';
import { StatementFailed } from './postgres-pipeline.ts';
import type { Renderer } from './postgres-render.ts';
import type { Session } from './postgres-session.ts';
import type { Row, Statement } from './sql.ts';

/** Questions that share a round trip; more wait for the next one. */
const TOGETHER_MAX = 64;

interface Question {
  readonly statement: Statement;
  readonly answer: Promise<readonly Row[]>;
  readonly resolve: (rows: readonly Row[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Sends queries of few rows by their keys together: those that arrive while a round trip is in flight share the next one,
 * because that costs both sides more than the query itself. Equal queries are sent once.
 */
export class Lookups {
  readonly #session: Session;
  readonly #renderer: Renderer;
  readonly #clock: Pick<Clock, 'soon'>;
  readonly #askAlone: (statement: Statement) => Promise<readonly Row[]>;
  readonly #waiting = new Map<string, Question>();
  #isBusy = false;
  #isClosed = false;
  #asking: Promise<void> = Promise.resolve();
  #opening: Promise<void> | undefined;

  /** `askAlone` answers what could not be answered together. */
  constructor(
    session: Session,
    renderer: Renderer,
    clock: Pick<Clock, 'soon'>,
    askAlone: (statement: Statement) => Promise<readonly Row[]>,
  ) {
    this.#session = session;
    this.#renderer = renderer;
    this.#clock = clock;
    this.#askAlone = askAlone;
  }

  /** The rows, which others may have got too. */
  ask(statement: Statement): Promise<readonly Row[]> {
    if (!this.#session.isOpen) {
      this.#reopen();
      return this.#askAlone(statement);
    }
    const key = JSON.stringify([statement.sql, statement.params]);
    const asked = this.#waiting.get(key);
    if (asked) return asked.answer;
    const { promise, resolve, reject } = Promise.withResolvers<readonly Row[]>();
    this.#waiting.set(key, { statement, answer: promise, resolve, reject });
    if (!this.#isBusy) this.#schedule();
    return promise;
  }

  /** Connects. Until then, and while the connection is lost, everybody asks alone. */
  async open(): Promise<void> {
    await this.#session.open();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#opening;
    while (this.#isBusy) await this.#asking;
    await this.#session.close();
  }

  #reopen(): void {
    if (this.#isClosed) return;
    this.#opening ??= this.open()
      .catch(() => {})
      .finally(() => {
        this.#opening = undefined;
      });
  }

  #schedule(): void {
    this.#isBusy = true;
    this.#asking = new Promise((resolve) => {
      this.#clock.soon(() => void this.#askWaiting().then(resolve));
    });
  }

  async #askWaiting(): Promise<void> {
    const together: Question[] = [];
    for (const [key, question] of this.#waiting) {
      if (together.length === TOGETHER_MAX) break;
      together.push(question);
      this.#waiting.delete(key);
    }
    await this.#askTogether(together);
    this.#isBusy = false;
    if (this.#waiting.size > 0) this.#schedule();
  }

  async #askTogether(questions: readonly Question[]): Promise<void> {
    const rows = this.#session.isOpen ? await this.#rowsOf(questions) : undefined;
    questions.forEach(({ statement, resolve, reject }, index) => {
      if (rows) resolve(rows[index]!);
      else this.#askAlone(statement).then(resolve, reject);
    });
  }

  /** Undefined if one of them failed or the connection did: then each is asked with the patience that queries have. */
  async #rowsOf(questions: readonly Question[]): Promise<readonly (readonly Row[])[] | undefined> {
    const statements = questions.map(({ statement }) => this.#renderer.render({ ...statement, returns: true }));
    try {
      return await this.#session.transact(statements);
    } catch (error) {
      if (!isOfDatabase(error)) await this.#session.close();
      else if (error instanceof StatementFailed && isOutdatedPlan(error.cause))
        this.#renderer.prepareAnew(statements[error.index]!.name);
      return undefined;
    }
  }
}

/** Whether the database itself has refused something: the connection can still be used. */
function isOfDatabase(error: unknown): boolean {
  return error instanceof StatementFailed || (error instanceof pg.DatabaseError && error.severity === 'ERROR');
}
