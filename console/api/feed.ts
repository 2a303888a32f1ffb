import { useEffect, useRef } from 'react';
import { RefusedError, UnreachableError } from '../../src/client/index.ts';
import type { FeedData } from '../../src/protocol/operations/feed.ts';
import { client } from './client.ts';
import { queries, readAgain } from './queries.ts';

type Listener = (event: string, data: FeedData) => void;

const listeners = new Set<Listener>();
let reading: AbortController | undefined;
/** What pages keep up to date from the feed, by the first word of its key. */
const FED = new Set<unknown>([
  'inbox',
  'viewers',
  'runs',
  'annotations',
  'goals',
  'goal',
  'proposals',
  'proposal',
  'installed',
]);

/** Reads again what was read before the feed began: what happened between the two was not told. */
function catchUp(): void {
  void readAgain({ predicate: ({ queryKey: [name] }) => FED.has(name) });
}

/** Reads the tenant's feed as long as somebody listens; the client reconnects and resumes by itself. */
async function read(signal: AbortSignal): Promise<void> {
  try {
    for await (const { event, data } of client.followTenant({ signal, onOpen: catchUp })) {
      if (event === undefined || data === '') continue;
      for (const listener of listeners) listener(event, JSON.parse(data) as FeedData);
    }
  } catch (error) {
    if (signal.aborted) return;
    const isGap = error instanceof RefusedError && error.status === 400;
    if (!isGap && !(error instanceof UnreachableError)) return console.warn('The feed ended:', error);
    // The host has not kept what happened since, or was away for longer than the client waits: everything is read again.
    if (isGap) await queries.invalidateQueries();
    return read(signal);
  }
}

/** Tells what happens in the tenant: new runs, new states, the inbox. All pages share one stream. */
export function useFeed(onEvent: Listener): void {
  const latest = useRef(onEvent);
  latest.current = onEvent;
  useEffect(() => {
    const listener: Listener = (event, data) => latest.current(event, data);
    listeners.add(listener);
    if (!reading) {
      reading = new AbortController();
      void read(reading.signal);
    }
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      reading?.abort();
      reading = undefined;
    };
  }, []);
}
