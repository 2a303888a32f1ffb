import { useSyncExternalStore } from 'react';
import type { HttpAnswer, HttpRequest } from '../../src/client/index.ts';

/** What only a proxy answers: the host behind it is gone. */
const GATEWAY_STATUSES: readonly number[] = [502, 504];
/** What a proxy answers for a host that is gone, and a host that is too busy. */
const UNAVAILABLE = 503;
/** A stream begins at once; a host that has said nothing for so long is gone. */
const STREAM_OPENS_MS = 5_000;

let lostAt: number | undefined;
const listeners = new Set<() => void>();
const recoveries = new Set<() => void>();

function setLost(at: number | undefined): void {
  const isRecovery = lostAt !== undefined && at === undefined;
  if (lostAt === at || (lostAt !== undefined && at !== undefined)) return;
  lostAt = at;
  for (const listener of listeners) listener();
  if (isRecovery) for (const recover of recoveries) recover();
}

/** Whether a proxy answered in place of the host. The host's own refusals are JSON. */
function isFromGateway({ status, headers }: HttpAnswer): boolean {
  if (status !== UNAVAILABLE) return GATEWAY_STATUSES.includes(status);
  return headers.get('content-type')?.startsWith('application/json') !== true;
}

/** `fetch` that takes note of whether the host answers. Streams and pages ask it all the time, so it knows soon. */
export async function watchedFetch(url: string, request: HttpRequest): Promise<HttpAnswer> {
  const isStream = request.headers?.accept === 'text/event-stream';
  const silence = isStream ? setTimeout(() => setLost(Date.now()), STREAM_OPENS_MS) : undefined;
  try {
    const answer = await fetch(url, request);
    setLost(isFromGateway(answer) ? Date.now() : undefined);
    return answer;
  } catch (error) {
    if (!request.signal?.aborted) setLost(Date.now());
    throw error;
  } finally {
    clearTimeout(silence);
  }
}

/** Calls the action each time the host answers again. */
export function onRecovery(action: () => void): void {
  recoveries.add(action);
}

/** Since when the host has not answered; undefined while it does. */
export function useLostSince(): number | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => lostAt,
  );
}

addEventListener('offline', () => setLost(Date.now()));
