import type { ComponentProps, ReactNode } from 'react';
import styles from './Button.module.css';

interface ButtonProps extends ComponentProps<'button'> {
  /** `main` once a page, for the one thing that it is for; `danger` for what cannot be undone; `fresh` for what came in. */
  readonly kind?: 'main' | 'plain' | 'quiet' | 'danger' | 'fresh';
  readonly icon?: ReactNode;
  /** The action is under way: it cannot be started again. */
  readonly isBusy?: boolean;
}

/** A button. Without text it needs an `aria-label`. */
export function Button({ kind = 'plain', icon, isBusy = false, children, disabled, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      className={styles.button}
      data-kind={kind}
      data-icon-only={children === undefined || undefined}
      disabled={disabled || isBusy}
      aria-busy={isBusy || undefined}
      {...rest}
    >
      {icon}
      {children}
    </button>
  );
}
