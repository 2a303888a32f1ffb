import { useVirtualizer } from '@tanstack/react-virtual';
import { memo, useMemo, useRef, useState } from 'react';
import type { RunEvent } from '../../src/client/index.ts';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { Dialog } from '../parts/Dialog.tsx';
import { counted } from '../parts/numbers.ts';
import { Empty } from '../parts/States.tsx';
import { clockTime } from '../parts/time.ts';
import styles from './EventLog.module.css';
import { ForkRun } from './ForkRun.tsx';

const ROW = 28;
const SHOWN_CHARACTERS = 240;

interface LogProps {
  readonly events: readonly RunEvent[];
  readonly run: RunSnapshot;
  /** Only events of this node. */
  readonly node: string | undefined;
}

/** Everything that happened, in order. Only the lines in sight are drawn, so a long log stays quick. */
export function EventLog({ events, run, node }: LogProps) {
  const [words, setWords] = useState('');
  const [isOfNode, setOfNode] = useState(false);
  const [opened, open] = useState<RunEvent>();
  const [isForking, setForking] = useState(false);
  const may = useMay();
  const rows = useMemo(() => {
    const wanted = words.toLowerCase();
    const ofNode = isOfNode ? node : undefined;
    return events.filter(
      (event) =>
        (ofNode === undefined || event.nodeId === ofNode) &&
        (wanted === '' || `${event.type} ${event.nodeId ?? ''}`.toLowerCase().includes(wanted)),
    );
  }, [events, words, isOfNode, node]);
  return (
    <div className={styles.log}>
      <div className={styles.filters}>
        <input
          type="search"
          placeholder="Filter by type or node"
          aria-label="Filter by type or node"
          value={words}
          onChange={({ target }) => setWords(target.value)}
        />
        {node !== undefined && (
          <label>
            <input type="checkbox" checked={isOfNode} onChange={({ target }) => setOfNode(target.checked)} /> Only{' '}
            {node}
          </label>
        )}
        <span className="quiet number">{counted(rows.length, 'event')}</span>
      </div>
      {rows.length === 0 ? <Empty title="No event matches" /> : <Lines rows={rows} onOpen={open} />}
      {opened && !isForking && (
        <Dialog
          title={opened.type}
          isOpen
          isSide
          onClose={() => open(undefined)}
          footer={may('runs:create') && <Button onClick={() => setForking(true)}>Fork from here</Button>}
        >
          <pre className={styles.json}>{JSON.stringify(opened, null, 2)}</pre>
        </Dialog>
      )}
      {opened && isForking && (
        <ForkRun
          run={run}
          fromSeq={opened.sequence}
          onClose={() => {
            setForking(false);
            open(undefined);
          }}
        />
      )}
    </div>
  );
}

function Lines({ rows, onOpen }: { readonly rows: readonly RunEvent[]; readonly onOpen: (event: RunEvent) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 6,
  });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable with the keyboard
    <section className={styles.scroll} ref={box} tabIndex={0} aria-label="Events">
      <div className={styles.inner} style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, start }) => {
          const event = rows[index]!;
          return <Line key={event.eventId} event={event} top={start} onOpen={onOpen} />;
        })}
      </div>
    </section>
  );
}

interface LineProps {
  readonly event: RunEvent;
  readonly top: number;
  readonly onOpen: (event: RunEvent) => void;
}

/** One event. Those that stay in sight while others are scrolled in are not drawn again. */
const Line = memo(function Line({ event, top, onOpen }: LineProps) {
  return (
    <button
      type="button"
      className={styles.row}
      style={{ transform: `translateY(${top}px)` }}
      onClick={() => onOpen(event)}
    >
      <span className={styles.sequence}>{event.sequence}</span>
      <span className={styles.time}>{clockTime(event.timestamp)}</span>
      <span className={styles.type}>{event.type}</span>
      <span className={styles.node}>{event.nodeId}</span>
      <span className={styles.payload}>{JSON.stringify(event.payload).slice(0, SHOWN_CHARACTERS)}</span>
    </button>
  );
});
