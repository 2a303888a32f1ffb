import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { isBlocked } from '../api/queries.ts';
import { type Column, DataTable } from '../parts/DataTable.tsx';
import { Dialog } from '../parts/Dialog.tsx';
import { JsonTree } from '../parts/JsonTree.tsx';
import { Panel } from '../parts/Panel.tsx';
import { Empty, Problem, Skeleton } from '../parts/States.tsx';
import type { SectionProps } from './OperationsPage.tsx';

interface ListProps<Row> extends SectionProps {
  readonly title: string;
  readonly query: UseQueryResult<readonly Row[]>;
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row) => string;
  readonly aside?: ReactNode;
  /** What these things are, and what brings the first one. */
  readonly emptyText: string;
  /** What is shown of one; everything as JSON without this. */
  readonly detail?: (row: Row) => ReactNode;
}

/** A list, and beside it one of its rows. */
export function ListSection<Row>(props: ListProps<Row>) {
  const { title, query, columns, keyOf, aside, emptyText, detail, item, onOpen } = props;
  const opened = item === undefined ? undefined : query.data?.find((row) => keyOf(row) === item);
  return (
    <Panel title={title} isFlush aside={aside ?? <span className="quiet number">{query.data?.length}</span>}>
      {isBlocked(query) ? (
        <Problem error={query.error} onRetry={() => void query.refetch()} />
      ) : !query.data ? (
        <Skeleton />
      ) : query.data.length === 0 ? (
        <Empty title={`No ${title.toLowerCase()} yet`}>{emptyText}</Empty>
      ) : (
        <DataTable label={title} columns={columns} rows={query.data} keyOf={keyOf} />
      )}
      {opened !== undefined && item !== undefined && (
        <Dialog title={item} isOpen isSide onClose={() => onOpen(undefined)}>
          {detail?.(opened) ?? <JsonTree value={opened} />}
        </Dialog>
      )}
    </Panel>
  );
}
