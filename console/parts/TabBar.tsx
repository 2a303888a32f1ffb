import styles from './TabBar.module.css';

interface TabsProps<Name extends string> {
  readonly label: string;
  /** A number stands beside the title of what is counted. */
  readonly tabs: readonly (readonly [name: Name, title: string, count?: number])[];
  readonly chosen: Name;
  readonly onChoose: (name: Name) => void;
  /** The id of what the tabs control. */
  readonly controls: string;
}

/** Tabs. What they show has `role="tabpanel"` and the id that is given here. */
export function TabBar<Name extends string>({ label, tabs, chosen, onChoose, controls }: TabsProps<Name>) {
  return (
    <div className={styles.tabs} role="tablist" aria-label={label}>
      {tabs.map(([name, title, count]) => (
        <button
          key={name}
          type="button"
          role="tab"
          aria-selected={chosen === name}
          aria-controls={controls}
          onClick={() => onChoose(name)}
        >
          {title}
          {count !== undefined && <span className={`number ${styles.count}`}>{count}</span>}
        </button>
      ))}
    </div>
  );
}
