import styles from './TabBar.module.css';

interface TabsProps<Name extends string> {
  readonly label: string;
  readonly tabs: readonly (readonly [name: Name, title: string])[];
  readonly chosen: Name;
  readonly onChoose: (name: Name) => void;
  /** The id of what the tabs control. */
  readonly controls: string;
}

/** Tabs. What they show has `role="tabpanel"` and the id that is given here. */
export function TabBar<Name extends string>({ label, tabs, chosen, onChoose, controls }: TabsProps<Name>) {
  return (
    <div className={styles.tabs} role="tablist" aria-label={label}>
      {tabs.map(([name, title]) => (
        <button
          key={name}
          type="button"
          role="tab"
          aria-selected={chosen === name}
          aria-controls={controls}
          onClick={() => onChoose(name)}
        >
          {title}
        </button>
      ))}
    </div>
  );
}
