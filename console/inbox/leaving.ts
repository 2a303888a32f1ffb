import { useSyncExternalStore } from 'react';
import { inboxQuery } from '../api/inbox.ts';
import { queries } from '../api/queries.ts';
import { complain, sayWithUndo } from '../parts/toasts.tsx';

/** Items that were answered and whose answers are not with the host yet. */
let leaving: ReadonlySet<string> = new Set();
const listeners = new Set<() => void>();

const warn = (event: BeforeUnloadEvent): void => event.preventDefault();

function set(next: ReadonlySet<string>): void {
  leaving = next;
  // Whoever closes the page now sends the answers that still wait for their undo, and cannot undo them any more.
  if (next.size > 0) addEventListener('beforeunload', warn);
  else removeEventListener('beforeunload', warn);
  for (const listener of listeners) listener();
}

const without = (key: string): ReadonlySet<string> => new Set([...leaving].filter((other) => other !== key));

/** The items that have left the queue for now. */
export function useLeaving(): ReadonlySet<string> {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => leaving,
  );
}

/** Takes an item off the queue and answers it in a moment, unless that is undone before. A refusal brings it back. */
export function leave(key: string, text: string, send: () => Promise<unknown>): void {
  set(new Set([...leaving, key]));
  const comeBack = (): void => set(without(key));
  const act = async (): Promise<void> => {
    try {
      await send();
    } catch (error) {
      complain(error);
    }
    await queries.invalidateQueries({ queryKey: inboxQuery.queryKey });
    comeBack();
  };
  sayWithUndo(text, () => void act(), comeBack);
}
