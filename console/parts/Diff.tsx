import { useEffect, useRef, useState } from 'react';
import type { Compared } from './code-mirror-diff.ts';
import styles from './Diff.module.css';
import { loaded } from './loaded.ts';
import { shadowOf } from './shadow.ts';

/** Below this width the sides are shown one below the other. */
const NARROW = '(max-width: 900px)';

/** What changed between two texts, side by side. It is loaded when it is first shown. */
export function Diff({ before, after, labels }: Compared) {
  const box = useRef<HTMLDivElement>(null);
  const [isNarrow, setNarrow] = useState(() => matchMedia(NARROW).matches);
  const [left, right] = labels;
  useEffect(() => {
    const narrow = matchMedia(NARROW);
    const onChange = (): void => setNarrow(narrow.matches);
    narrow.addEventListener('change', onChange);
    return () => narrow.removeEventListener('change', onChange);
  }, []);
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
