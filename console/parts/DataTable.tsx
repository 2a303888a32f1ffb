import type { ReactNode } from 'react';
import styles from './DataTable.module.css';

/** A column of a table. */
export interface Column<Row> {
  readonly title: string;
  readonly show: (row: Row) => ReactNode;
  /** Numbers are compared more easily at the right. */
  readonly isRight?: boolean;
  /** Left out where there is little room. */
  readonly isExtra?: boolean;
}

interface TableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
}

/** A table for lists that fit a page; long ones are virtual, as runs are. */
export function DataTable<Row>({ label, columns, rows, keyOf }: TableProps<Row>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable with the keyboard
    <section className={styles.scroll} aria-label={label} tabIndex={0}>
      <table className={styles.table}>
        <thead>
          <tr>
            {columns.map(({ title, isRight, isExtra }) => (
              <th key={title} scope="col" data-right={isRight} data-extra={isExtra}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ title, show, isRight, isExtra }) => (
                <td key={title} data-right={isRight} data-extra={isExtra} data-title={title}>
                  {show(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
