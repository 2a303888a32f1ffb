import { useEffect, useRef, useState } from 'react';
import styles from './Editor.module.css';
import { loaded } from './loaded.ts';
import { shadowOf } from './shadow.ts';

interface EditorProps {
  readonly value: string;
  readonly onChange: (text: string) => void;
  readonly label: string;
  readonly language?: 'json' | 'text';
}

/** An editor for JSON and other text. It is loaded when it is first shown; until then a plain field does. */
export function Editor({ value, onChange, label, language = 'json' }: EditorProps) {
  const box = useRef<HTMLDivElement>(null);
  const first = useRef(value);
  const latest = useRef(onChange);
  latest.current = onChange;
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    let unmount: (() => void) | undefined;
    let isGone = false;
    void loaded(() => import('./code-mirror.ts')).then(({ mountEditor }) => {
      if (isGone || !box.current) return;
      const options = { text: first.current, label, language, onChange: (text: string) => latest.current(text) };
      unmount = mountEditor(shadowOf(box.current), options);
      setReady(true);
    });
    return () => {
      isGone = true;
      unmount?.();
    };
  }, [label, language]);
  return (
    <div className={styles.editor}>
      <div ref={box} />
      {!isReady && <textarea aria-label={label} value={value} onChange={({ target }) => onChange(target.value)} />}
    </div>
  );
}
