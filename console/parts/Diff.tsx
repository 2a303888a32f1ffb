import { useEffect, useRef } from 'react';
import type { Compared } from './code-mirror-diff.ts';
import styles from './Diff.module.css';
import { loaded } from './loaded.ts';
import { useNarrow } from './narrow.ts';
import { shadowOf } from './shadow.ts';

/** Below this width the sides are shown one below the other. */
const NARROW = 900;

/** What changed between two texts, side by side. It is loaded when it is first shown. */
export function Diff({ before, after, labels }: Compared) {
  const box = useRef<HTMLDivElement>(null);
  const isNarrow = useNarrow(NARROW);
  const [left, right] = labels;
  useEffect(() => {
    let unmount: (() => void) | undefined;
    let isGone = false;
    void loaded(() => import('./code-mirror-diff.ts')).then(({ mountDiff }) => {
      if (!isGone && box.current)
        unmount = mountDiff(shadowOf(box.current), { before, after, labels: [left, right] }, isNarrow);
    });
    return () => {
      isGone = true;
      unmount?.();
    };
  }, [before, after, left, right, isNarrow]);
  return (
    <div className={styles.diff}>
      <div className={styles.labels}>
        <span>{left}</span>
        <span>{right}</span>
      </div>
      {before === after && <p className={styles.same}>Both are the same.</p>}
      <div ref={box} className={styles.texts} />
    </div>
  );
}
