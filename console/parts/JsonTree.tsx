import styles from './JsonTree.module.css';

const OPEN_DEPTH = 2;
const MEMBERS_MAX = 200;

/** A value as a tree. Strings are text and never markup, whatever is in them. */
export function JsonTree({ value, depth = 0 }: { readonly value: unknown; readonly depth?: number }) {
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
      {members.length > MEMBERS_MAX && <li className={styles.dim}>{members.length - MEMBERS_MAX} more</li>}
    </ul>
  );
  if (depth === 0) return <div className={styles.tree}>{only(value) ?? rows}</div>;
  return (
    <details open={depth < OPEN_DEPTH} className={styles.nested}>
      <summary className={styles.dim}>
        {Array.isArray(value) ? `${members.length} items` : `${members.length} members`}
      </summary>
      {rows}
    </details>
  );
}

/** A value that has one member, which has members itself, is shown without a level that says nothing. */
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
