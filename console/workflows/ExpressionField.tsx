import { useEffect, useRef, useState } from 'react';
import { loaded } from '../parts/loaded.ts';
import { shadowOf } from '../parts/shadow.ts';
import type { KnownName } from './expression-editor.ts';
import styles from './Inspector.module.css';

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly names: readonly KnownName[];
  readonly onChange: (text: string) => void;
}

/** A CEL expression, with the names of the workflow completed. Until its editor is loaded a plain field does. */
export function ExpressionField({ label, value, names, onChange }: FieldProps) {
  const box = useRef<HTMLDivElement>(null);
  const first = useRef(value);
  const latest = useRef({ names, onChange });
  latest.current = { names, onChange };
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    let unmount: (() => void) | undefined;
    let isGone = false;
    void loaded(() => import('./expression-editor.ts')).then(({ mountExpressionEditor }) => {
      if (isGone || !box.current) return;
      unmount = mountExpressionEditor(shadowOf(box.current), {
        text: first.current,
        label,
        names: () => latest.current.names,
        onChange: (text) => latest.current.onChange(text),
      });
      setReady(true);
    });
    return () => {
      isGone = true;
      unmount?.();
    };
  }, [label]);
  return (
    <div className={styles.expression}>
      <span className={styles.label}>{label}</span>
      <div ref={box} />
      {!isReady && <textarea aria-label={label} value={value} onChange={({ target }) => onChange(target.value)} />}
    </div>
  );
}
