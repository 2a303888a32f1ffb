import { type ReactNode, useId } from 'react';
import styles from './Panel.module.css';

interface PanelProps {
  readonly title: string;
  /** Beside the title: a count, or actions. */
  readonly aside?: ReactNode;
  /** The content reaches to the edges, as tables and graphs do. */
  readonly isFlush?: boolean;
  readonly children: ReactNode;
}

/** A part of a page, with its title. */
export function Panel({ title, aside, isFlush = false, children }: PanelProps) {
  const id = useId();
  return (
    <section className={styles.panel} aria-labelledby={id}>
      <header className={styles.head}>
        <h2 id={id}>{title}</h2>
        {aside}
      </header>
      <div className={isFlush ? styles.flush : styles.body}>{children}</div>
    </section>
  );
}
