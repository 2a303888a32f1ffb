import { X } from 'lucide-react';
import { useSyncExternalStore } from 'react';
import { Button } from './Button.tsx';
import { explain } from './explain.ts';
import styles from './toasts.module.css';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly kind: 'done' | 'failed';
  readonly undo?: () => void;
}

const SHOWN_MS = 6_000;
/** How long an action waits for its undo. */
const UNDO_MS = 5_000;
let toasts: readonly Toast[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

function drop(id: number): void {
  set(toasts.filter((toast) => toast.id !== id));
}

function show(toast: Omit<Toast, 'id'>, ms = SHOWN_MS): number {
  const id = ++lastId;
  set([...toasts.slice(-2), { ...toast, id }]);
  setTimeout(() => drop(id), ms);
  return id;
}

/** Says that something was done. */
export function say(text: string): void {
  show({ text, kind: 'done' });
}

/** Says that something failed, in the host's words. */
export function complain(error: unknown): void {
  const { title, text } = explain(error);
  show({ text: `${title}. ${text}`, kind: 'failed' });
}

/** Does something in a moment, unless it is undone before. Nothing is sent until then, or until the page is left. */
export function sayWithUndo(text: string, act: () => void, onUndo: () => void = () => {}): void {
  const end = (): void => {
    clearTimeout(timer);
    removeEventListener('pagehide', send);
    drop(id);
  };
  const send = (): void => {
    end();
    act();
  };
  const undo = (): void => {
    end();
    onUndo();
  };
  const timer = setTimeout(send, UNDO_MS);
  addEventListener('pagehide', send);
  const id = show({ text: `${text} Sent in ${UNDO_MS / 1_000} seconds.`, kind: 'done', undo }, UNDO_MS);
}

/** Where toasts appear. */
export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <section className={styles.toasts} aria-label="Notices" aria-live="polite">
      {shown.map(({ id, text, kind, undo }) => (
        <div key={id} className={styles.toast} data-kind={kind} role={kind === 'failed' ? 'alert' : undefined}>
          <span className={styles.text}>{text}</span>
          {undo && (
            <Button kind="quiet" onClick={undo}>
              Undo
            </Button>
          )}
          <Button kind="quiet" aria-label="Dismiss" icon={<X />} onClick={() => drop(id)} />
        </div>
      ))}
    </section>
  );
}
