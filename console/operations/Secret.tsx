import { Copy } from '../parts/Copy.tsx';
import styles from './Operations.module.css';

interface SecretProps {
  /** What it is, as in "the key". */
  readonly label: string;
  readonly text: string;
}

/** Something that is shown once, to be copied. */
export function Secret({ label, text }: SecretProps) {
  return (
    <div className={styles.form}>
      <p>Copy it now: it is shown only once.</p>
      <div className={styles.secret}>
        <code>{text}</code>
        <Copy text={text} label={label} />
      </div>
    </div>
  );
}
