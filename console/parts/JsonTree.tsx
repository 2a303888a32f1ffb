import styles from './JsonTree.module.css';
import { count, counted } from './numbers.ts';

const OPEN_DEPTH = 2;
const MEMBERS_MAX = 200;

interface TreeProps {
  readonly value: unknown;
  readonly depth?: number;
  /** Leaves out a level that has one member, whose name says nothing here: the only node with outputs, for example. */
  readonly isUnwrapped?: boolean;
}

/** A value as a tree. Strings are text and never markup, whatever is in them. */
export function JsonTree({ value, depth = 0, isUnwrapped = false }: TreeProps) {
  if (typeof value !== 'object' || value === null) return <Leaf value={value} />;
  const members = Object.entries(value);
  if (members.length === 0) return <span className={styles.dim}>{Array.isArray(value) ? '[]' : '{}'}</span>;
  const rows = (
    <ul className={styles.members}>
      {members.slice(0, MEMBERS_MAX).map(([name, member]) => (
        <li key={name} className={styles.member}>
          <span className={styles.name}>{name}</span>
          <JsonTree value={member} depth={depth + 1} />
        </li>
      ))}
      {members.length > MEMBERS_MAX && <li className={styles.dim}>{count(members.length - MEMBERS_MAX)} more</li>}
    </ul>
  );
  if (depth === 0) return <div className={styles.tree}>{(isUnwrapped && only(value)) || rows}</div>;
  return (
    <details open={depth < OPEN_DEPTH} className={styles.nested}>
      <summary className={styles.dim}>{counted(members.length, Array.isArray(value) ? 'item' : 'member')}</summary>
      {rows}
    </details>
  );
}

/** The one member of a value, if it has members itself. */
function only(value: object) {
  const [member, ...others] = Object.values(value);
  const isDeep = typeof member === 'object' && member !== null && Object.keys(member).length > 0;
  return others.length === 0 && isDeep && !Array.isArray(value) ? (
    <JsonTree value={{ ...member }} depth={0} />
  ) : undefined;
}

function Leaf({ value }: { readonly value: unknown }) {
  if (typeof value === 'string') {
    return (
      <span dir="auto" className={styles.text}>
        {value === '' ? <span className={styles.dim}>empty text</span> : value}
      </span>
    );
  }
  return <span className={styles.literal}>{value === undefined ? 'nothing' : JSON.stringify(value)}</span>;
}
