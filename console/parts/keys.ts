import { useEffect, useRef } from 'react';

/** A key of a page, or two in a row such as `g r`, with what it does. */
export interface Key {
  readonly keys: string;
  readonly label: string;
  readonly act: () => void;
}

/** The keys of the palette, as this machine names them. */
export const PALETTE_KEYS = /Mac|iP/.test(navigator.platform) ? '⌘ K' : 'Ctrl K';

const SEQUENCE_MS = 900;
const groups: { title: string; keys: readonly Key[] }[] = [];
let first: { key: string; at: number } | undefined;

/** The keys that work now, for the help: of two actions with one key, the one that was shown later has it. */
export function currentKeys(): readonly { title: string; keys: readonly Key[] }[] {
  return groups
    .map(({ title, keys }, index) => {
      const later = new Set(groups.slice(index + 1).flatMap((group) => group.keys.map((key) => key.keys)));
      return { title, keys: keys.filter((key) => !later.has(key.keys)) };
    })
    .filter(({ keys }) => keys.length > 0);
}

/** Makes keys work as long as the component is shown. They do not while a person types or a dialog is open. */
export function useKeys(title: string, keys: readonly Key[]): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const group = {
      title,
      get keys() {
        return latest.current;
      },
    };
    groups.push(group);
    return () => {
      groups.splice(groups.indexOf(group), 1);
    };
  }, [title]);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, textarea, select, [contenteditable], dialog') !== null;
}

addEventListener('keydown', (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.composedPath()[0] ?? null)) return;
  if (document.querySelector('[role="dialog"]')) return;
  const pressed = event.key;
  const isSecond = first !== undefined && event.timeStamp - first.at < SEQUENCE_MS;
  const wanted = isSecond ? `${first?.key} ${pressed}` : pressed;
  const all = groups.toReversed().flatMap(({ keys }) => keys);
  const found = all.find(({ keys }) => keys === wanted) ?? all.find(({ keys }) => keys === pressed);
  first = undefined;
  if (found) {
    // A link or button that has the focus keeps its own Enter.
    if (pressed === 'Enter' && event.target instanceof HTMLElement && event.target.closest('a, button')) return;
    event.preventDefault();
    found.act();
  } else if (all.some(({ keys }) => keys.startsWith(`${pressed} `))) {
    first = { key: pressed, at: event.timeStamp };
  }
});
