import type { Api } from './api.ts';

/** Whether a run comes to its end with no pause between two events longer than so many seconds. */
export async function endsWithoutPause(api: Api, runId: string, seconds: number): Promise<boolean> {
  let last = '';
  for (;;) {
    const { body } = await api.get(`/v1/runs/${runId}/events/poll?timeout=${seconds}${last}`);
    if (body.isTerminal) return true;
    if (body.events.length === 0) return false;
    last = `&lastSequence=${body.events.at(-1).sequence}`;
  }
}
