import { queryOptions } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { platform } from '../../src/client/index.ts';
import type { InboxItem } from '../../src/protocol/people/inbox.ts';
import { client, partingClient } from './client.ts';
import { useFeed } from './feed.ts';
import { readAgain } from './queries.ts';

/** Whoever goes through the queue quickly looks at nothing for that long. */
const REST_MS = 500;
/** The host takes a window for closed after ten seconds without a word. */
const SAY_AGAIN_MS = 4_000;
/** The feed tells at once who comes and goes; only a host that died tells nothing. */
const ASK_AGAIN_MS = 15_000;

/** Who has which item open. */
export const viewersQuery = queryOptions({
  queryKey: ['viewers'],
  queryFn: ({ signal }) => client.listInboxViewers({ signal }),
  refetchInterval: ASK_AGAIN_MS,
});

/** Reads again who looks at what, whenever the feed says that it is somebody else. */
export function useViewerNews(): void {
  useFeed((event) => {
    if (event === 'inbox.viewers') void readAgain({ queryKey: viewersQuery.queryKey });
  });
}

/** What the host calls this window, while an item is open in it. A window that comes back has another name. */
let windowId: string | undefined;

/** Says that nothing is open in this window any more. What cannot be said is over by itself in a few seconds. */
export async function stopLooking(): Promise<void> {
  const ended = windowId;
  windowId = undefined;
  if (ended !== undefined) await partingClient.leaveInboxItem(ended).catch(() => {});
}

/** Says which item is open in this window, for as long as it is and somebody can see it. */
export function useLooking(item: InboxItem | undefined): void {
  const isHidden = useHidden();
  const { kind, id, runId, createdAt } = item ?? {};
  useEffect(() => {
    if (isHidden || kind === undefined || id === undefined || createdAt === undefined) return void stopLooking();
    const look = { kind, id, createdAt, ...(runId === undefined ? {} : { runId }) };
    const left = new AbortController();
    const say = (): void => {
      windowId ??= platform.unique();
      // What no longer waits is refused; the queue says so itself.
      client.lookAtInboxItem(windowId, look, { signal: left.signal, retry: { attempts: 1 } }).catch(() => {});
    };
    const rested = setTimeout(say, REST_MS);
    const again = setInterval(say, SAY_AGAIN_MS);
    return () => {
      clearTimeout(rested);
      clearInterval(again);
      left.abort();
    };
  }, [isHidden, kind, id, runId, createdAt]);
  useEffect(() => {
    const onLeave = (): void => void stopLooking();
    addEventListener('pagehide', onLeave);
    return () => {
      removeEventListener('pagehide', onLeave);
      onLeave();
    };
  }, []);
}

/** Whether the window is behind others, where nobody looks at it. */
function useHidden(): boolean {
  const [isHidden, setHidden] = useState(document.hidden);
  useEffect(() => {
    const onChange = (): void => setHidden(document.hidden);
    document.addEventListener('visibilitychange', onChange);
    return () => document.removeEventListener('visibilitychange', onChange);
  }, []);
  return isHidden;
}
