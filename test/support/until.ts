import { setImmediate } from 'node:timers/promises';

const DEADLINE_MS = 30_000;

/** Asks again and again, each time once the answer to the last question is there, until it is as wanted. */
export async function until<T>(ask: () => Promise<T>, isWanted: (answer: T) => boolean): Promise<T> {
  const giveUpAt = Date.now() + DEADLINE_MS;
  for (;;) {
    const answer = await ask();
    if (isWanted(answer)) return answer;
    if (Date.now() > giveUpAt) throw new Error(`still waiting: ${JSON.stringify(answer)}`);
    // Whoever answers out of memory never leaves the others a turn.
    await setImmediate();
  }
}
