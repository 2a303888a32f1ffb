import { Dialog } from './Dialog.tsx';
import styles from './KeyHelp.module.css';
import { currentKeys, PALETTE_KEYS } from './keys.ts';

const PALETTE = { keys: PALETTE_KEYS, label: 'Go anywhere, start a run' };

/** The keys of this page. */
export function KeyHelp({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keyboard" isOpen onClose={onClose}>
      {currentKeys().map(({ title, keys }) => (
        <section key={title} className={styles.group}>
          <h3>{title}</h3>
          <dl className={styles.keys}>
            {[...(title === 'Everywhere' ? [PALETTE] : []), ...keys].map(({ keys: pressed, label }) => (
              <div key={pressed} className={styles.row}>
                <dt>{label}</dt>
                <dd>
                  {pressed.split(' ').map((key) => (
                    <kbd key={key} className={styles.kbd}>
                      {key}
                    </kbd>
                  ))}
                </dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </Dialog>
  );
}
