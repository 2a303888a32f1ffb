import { setTimeout } from 'node:timers/promises';

const DEADLINE_MS = 30_000;
const PAUSE_MAX_MS = 30;

/**
 * Asks again and again until the answer is as wanted, with a pause that grows: questions without a pause would take the
 * processor from what they wait for.
 */
export async function until<T>(ask: () => Promise<T>, isWanted: (answer: T) => boolean): Promise<T> {
  const giveUpAt = Date.now() + DEADLINE_MS;
  for (let pauseMs = 1; ; pauseMs = Math.min(PAUSE_MAX_MS, pauseMs * 2)) {
    const answer = await ask();
    if (isWanted(answer)) return answer;
    if (Date.now() > giveUpAt) throw new Error(`still waiting: ${JSON.stringify(answer)}`);
    await setTimeout(pauseMs);
  }
}
