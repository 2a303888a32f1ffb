import type { Clock } from '../system/clock.ts';
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
 * Looks for few rows by their keys. What is asked for while an answer is on its way shares the next round trip, because
 * that costs both sides more than the look itself. The same question is asked once.
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
    if (this.#isClosed) return this.#askAlone(statement);
    const key = JSON.stringify([statement.sql, statement.params]);
    const asked = this.#waiting.get(key);
    if (asked) return asked.answer;
    const { promise, resolve, reject } = Promise.withResolvers<readonly Row[]>();
    this.#waiting.set(key, { statement, answer: promise, resolve, reject });
    if (!this.#isBusy) this.#schedule();
    return promise;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    while (this.#isBusy) await this.#asking;
    await this.#session.close();
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
    try {
      await this.#session.open();
      const rows = await this.#session.transact(
        questions.map(({ statement }) => this.#renderer.render({ ...statement, returns: true })),
      );
      questions.forEach(({ resolve }, index) => void resolve(rows[index]!));
    } catch {
      // Whichever of them failed: each is asked again, with the patience that queries have.
      for (const { statement, resolve, reject } of questions) this.#askAlone(statement).then(resolve, reject);
    }
  }
}
