import { CircleAlert } from 'lucide-react';
import { type ReactNode, useEffect, useState } from 'react';
import { Button } from './Button.tsx';
import { explain } from './explain.ts';
import styles from './States.module.css';

export { explain } from './explain.ts';

/** What a place is for that has nothing in it yet, and the one thing that fills it. */
export function Empty(props: { readonly title: string; readonly children?: ReactNode; readonly action?: ReactNode }) {
  return (
    <div className={styles.state}>
      <h2>{props.title}</h2>
      {props.children && <p className={styles.text}>{props.children}</p>}
      {props.action && <div className={styles.action}>{props.action}</div>}
    </div>
  );
}

/** What failed, in the host's words, what to do about it, and a way to try again. */
export function Problem({ error, onRetry }: { readonly error: unknown; readonly onRetry?: () => void }) {
  const { title, text } = explain(error);
  return (
    <div className={styles.state} role="alert">
      <CircleAlert className={styles.icon} aria-hidden="true" />
      <h2>{title}</h2>
      <p className={styles.text}>{text}</p>
      {onRetry && (
        <div className={styles.action}>
          <Button onClick={onRetry}>Try again</Button>
        </div>
      )}
    </div>
  );
}

const PATIENCE_MS = 300;
const LINES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];

/** Stands where rows will be. Nothing is shown at first, because most answers are quicker than the eye. */
export function Skeleton({ lines = 6 }: { readonly lines?: number }) {
  const [isShown, show] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => show(true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className={styles.skeleton} aria-busy="true" data-shown={isShown || undefined}>
      <span className="hidden">Loading</span>
      {LINES.slice(0, lines).map((line) => (
        <div key={line} className={styles.bone} />
      ))}
    </div>
  );
}
