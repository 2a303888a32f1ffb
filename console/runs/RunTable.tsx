import { Link, useNavigate } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef, useState } from 'react';
import type { RunSummary } from '../../src/protocol/running/runs.ts';
import { useKeys } from '../parts/keys.ts';
import { useNarrow } from '../parts/narrow.ts';
import { compact, count, dollars } from '../parts/numbers.ts';
import { StateMark } from '../parts/StateMark.tsx';
import { Duration, Time } from '../parts/Time.tsx';
import { originText, originWord } from './origin.ts';
import styles from './RunTable.module.css';

const ROW = 36;
/** A row of three lines, where there is no room for columns. */
const TALL_ROW = 84;
const NARROW = 900;
/** Ids begin with their time, so the end tells them apart; the whole is on the page of the run. */
const ID_CHARS = 8;

interface TableProps {
  readonly rows: readonly RunSummary[];
  readonly chosen: ReadonlySet<string>;
  readonly choose: (chosen: ReadonlySet<string>) => void;
  readonly onEnd: () => void;
}

/** Runs, one a row; only those in view are in the page, however many there are. */
export function RunTable({ rows, chosen, choose, onEnd }: TableProps) {
  const box = useRef<HTMLDivElement>(null);
  const rowHeight = useNarrow(NARROW) ? TALL_ROW : ROW;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: 12,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: heights that were measured are forgotten when rows get others
  useEffect(() => virtual.measure(), [virtual, rowHeight]);
  const items = virtual.getVirtualItems();
  if ((items.at(-1)?.index ?? 0) >= rows.length - 10) queueMicrotask(onEnd);
  const toggle = (runId: string): void => {
    const next = new Set(chosen);
    if (!next.delete(runId)) next.add(runId);
    choose(next);
  };
  const focus = useFocus(rows, toggle, (index) => virtual.scrollToIndex(index));
  return (
    <div className={styles.table} role="table" aria-label="Runs" aria-rowcount={rows.length}>
      <Header />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable with the keyboard */}
      <div className={styles.scroll} ref={box} tabIndex={0} role="rowgroup" aria-label="Rows">
        <div className={styles.inner} style={{ height: virtual.getTotalSize() }}>
          {items.map(({ index, start }) => {
            const run = rows[index]!;
            return (
              <Row
                key={run.runId}
                run={run}
                top={start}
                isFocused={index === focus}
                isChosen={chosen.has(run.runId)}
                onChoose={() => toggle(run.runId)}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}

/** The row that the keys are at: they move it, open its run and choose it. */
function useFocus(
  rows: readonly RunSummary[],
  toggle: (runId: string) => void,
  scrollTo: (index: number) => void,
): number {
  const navigate = useNavigate();
  const [focus, setFocus] = useState(-1);
  const move = (by: number) => (): void => {
    const next = Math.min(rows.length - 1, Math.max(0, focus + by));
    setFocus(next);
    scrollTo(next);
  };
  const at = rows[focus];
  useKeys('Runs', [
    { keys: 'j', label: 'Next run', act: move(1) },
    { keys: 'k', label: 'Previous run', act: move(-1) },
    {
      keys: 'Enter',
      label: 'Open the run',
      act: () => at && void navigate({ to: '/runs/$runId', params: { runId: at.runId }, search: {} }),
    },
    { keys: 'x', label: 'Choose the run', act: () => at && toggle(at.runId) },
  ]);
  return focus;
}

function Header() {
  return (
    <div className={styles.header} role="row">
      <span role="columnheader" aria-label="Chosen" />
      <span role="columnheader">State</span>
      <span role="columnheader">Workflow</span>
      <span role="columnheader">Outcome</span>
      <span role="columnheader">Run</span>
      <span role="columnheader">Started</span>
      <span role="columnheader" className={styles.right}>
        Duration
      </span>
      <span role="columnheader" className={styles.right}>
        Cost
      </span>
    </div>
  );
}

interface RowProps {
  readonly run: RunSummary;
  readonly top: number;
  readonly isFocused: boolean;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}

function Row({ run, top, isFocused, isChosen, onChoose }: RowProps) {
  const { runId, workflowId, workflowVersion, status, createdAt, endedAt, cost } = run;
  return (
    <div
      className={styles.row}
      role="row"
      style={{ transform: `translateY(${top}px)` }}
      data-focused={isFocused || undefined}
      data-chosen={isChosen || undefined}
    >
      <span role="cell" className={styles.check}>
        <input type="checkbox" checked={isChosen} onChange={onChoose} aria-label={`Choose ${runId}`} />
      </span>
      <span role="cell" className={styles.state}>
        <StateMark state={status} />
      </span>
      <span role="cell" className={styles.workflow}>
        <Link to="/runs/$runId" params={{ runId }} search={{}} className={styles.link} dir="auto">
          {workflowId}
        </Link>
        <span className="quiet number">@{workflowVersion}</span>
        <Origin run={run} />
      </span>
      <Outcome run={run} />
      <span role="cell" className={styles.id} title={runId}>
        …{runId.slice(-ID_CHARS)}
      </span>
      <span role="cell" className={`quiet ${styles.started}`}>
        <Time at={createdAt} />
      </span>
      <span role="cell" className={`${styles.right} ${styles.duration}`}>
        <Duration from={createdAt} to={endedAt} />
      </span>
      <span role="cell" className={`${styles.right} ${styles.cost}`}>
        <Cost cost={cost} />
      </span>
    </div>
  );
}

function Origin({ run }: { readonly run: RunSummary }) {
  const word = originWord(run);
  if (word === undefined) return null;
  return (
    <span className={styles.origin} title={originText(run)}>
      {word}
    </span>
  );
}

/** The beginning of the result or the error; the whole of it is on the page of the run. */
function Outcome({ run: { status, outcome, errorCode } }: { readonly run: RunSummary }) {
  const text = outcome ?? errorCode;
  const title = [errorCode, outcome].filter(Boolean).join(': ');
  return (
    <span
      role="cell"
      className={styles.outcome}
      data-failed={status === 'failed' || undefined}
      title={title}
      dir="auto"
    >
      {text}
    </span>
  );
}

/** What the model calls of a run cost; their tokens if nobody knows the price. */
function Cost({ cost }: { readonly cost: RunSummary['cost'] }) {
  if (cost === undefined) return null;
  const { input = 0, output = 0 } = cost.tokens ?? {};
  const tokens = `${count(input)} tokens in, ${count(output)} out`;
  return (
    <span className="number quiet" title={cost.usd === undefined ? `${tokens}; the price is not known` : tokens}>
      {cost.usd === undefined ? `${compact(input + output)} tokens` : dollars(cost.usd)}
    </span>
  );
}
