import { Plus } from 'lucide-react';
import { useState } from 'react';
import type { NodeTypeSummary } from '../../src/protocol/running/workflows.ts';
import styles from './Catalogue.module.css';

/** Groups in the order in which people look for them; a type is in the first that fits. */
const GROUPS: readonly (readonly [title: string, fits: RegExp])[] = [
  ['Models and agents', /^core\.(ai|agents|orchestrator|dispatch)/],
  ['People', /gate|interrupt|feedback/i],
  ['Flow', /^core\.(flow|conditional|parallel|loop|merge|delay|subWorkflow|start|end|noop|fail)|vendor\.capstan\.flow/],
  ['Data', /data|variable|identity|channel/i],
  ['Integrations', /http|integration|storage|mcp|code/],
  ['Learning', /vendor\.capstan\.(judge|verify|memory)/],
  ['Other', /./],
];

interface CatalogueProps {
  readonly types: readonly NodeTypeSummary[];
  readonly onAdd: (typeId: string) => void;
}

/** The node types of the host: a click adds one after what is selected, dragging adds it anywhere. */
export function Catalogue({ types, onAdd }: CatalogueProps) {
  const [words, setWords] = useState('');
  const wanted = words.toLowerCase();
  const shown = types.filter(({ typeId, description = '' }) =>
    `${typeId} ${description}`.toLowerCase().includes(wanted),
  );
  const groups = Map.groupBy(shown, ({ typeId }) => GROUPS.findIndex(([, fits]) => fits.test(typeId)));
  return (
    <section className={styles.catalogue} aria-label="Catalogue">
      <input
        type="search"
        className={styles.search}
        aria-label="Search the catalogue"
        placeholder="Search node types"
        value={words}
        onChange={({ target }) => setWords(target.value)}
        onKeyDown={({ key }) => {
          const [first] = shown;
          if (key === 'Enter' && first) onAdd(first.typeId);
        }}
      />
      <div className={styles.list}>
        {shown.length === 0 && <p className={styles.none}>No type has this name.</p>}
        {GROUPS.map(([title], index) => {
          const found = groups.get(index);
          return (
            found && (
              <div key={title}>
                <h3 className={styles.group}>{title}</h3>
                <ul>
                  {found.map((type) => (
                    <TypeRow key={type.typeId} type={type} onAdd={onAdd} />
                  ))}
                </ul>
              </div>
            )
          );
        })}
      </div>
    </section>
  );
}

function TypeRow({
  type: { typeId, description },
  onAdd,
}: {
  readonly type: NodeTypeSummary;
  readonly onAdd: (typeId: string) => void;
}) {
  return (
    <li>
      <button
        type="button"
        className={styles.type}
        draggable
        title={typeId}
        onClick={() => onAdd(typeId)}
        onDragStart={({ dataTransfer }) => dataTransfer.setData('application/x-node-type', typeId)}
      >
        <span className={styles.name}>
          {typeId.split('.').at(-1)}
          <Plus aria-hidden="true" />
        </span>
        <span className="hidden">{typeId}</span>
        <span className={styles.text}>{description ?? typeId}</span>
      </button>
    </li>
  );
}
