import { Dialog as Base } from '@base-ui/react/dialog';
import { X } from 'lucide-react';
import type { ReactNode } from 'react';
import { Button } from './Button.tsx';
import styles from './Dialog.module.css';

interface DialogProps {
  readonly title: string;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  /** Beside the page instead of over it: for forms and details. */
  readonly isSide?: boolean;
  readonly children: ReactNode;
  readonly footer?: ReactNode;
}

/** A dialog that keeps the focus inside, closes with Escape, and gives the focus back. */
export function Dialog({ title, isOpen, onClose, isSide = false, children, footer }: DialogProps) {
  return (
    <Base.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <Base.Portal>
        <Base.Backdrop className={styles.scrim} />
        <Base.Popup className={isSide ? styles.side : styles.dialog}>
          <Base.Title className={styles.title}>{title}</Base.Title>
          <div className={styles.body}>{children}</div>
          {footer && <footer className={styles.foot}>{footer}</footer>}
          {/* Last, so that the focus begins with what the dialog is for. */}
          <div className={styles.close}>
            <Base.Close render={<Button kind="quiet" aria-label="Close" icon={<X />} />} />
          </div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
