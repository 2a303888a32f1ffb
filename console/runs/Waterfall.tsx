import { markOf } from '../parts/StateMark.tsx';
import { Empty } from '../parts/States.tsx';
import { useNow } from '../parts/Time.tsx';
import { span } from '../parts/time.ts';
import type { NodeView, RunView } from './view.ts';
import styles from './Waterfall.module.css';

interface WaterfallProps {
  readonly view: RunView;
  /** The whole run, for the scale. */
  readonly whole: RunView;
  readonly selected: string | undefined;
  readonly onSelect: (nodeId: string) => void;
}

const TICKS = [0, 0.25, 0.5, 0.75, 1];

/** When each node was at work and when it waited: one row a node, in the order of their starts. */
export function Waterfall({ view, whole, selected, onSelect }: WaterfallProps) {
  const now = useNow(whole.endedAt === undefined ? 500 : 0);
  const rows = [...view.nodes.values()].filter(({ spans }) => spans.length > 0);
  if (whole.startedAt === undefined || rows.length === 0) {
    return <Empty title="Nothing has started yet">Each node gets a row here when it starts.</Empty>;
  }
  const from = whole.startedAt;
  const total = Math.max(1, (whole.endedAt ?? now) - from);
  const until = view === whole ? (whole.endedAt ?? now) : (view.lastAt ?? now);
  return (
    <div className={styles.waterfall}>
      <div className={styles.scale} aria-hidden="true">
        {TICKS.map((tick) => (
          <span key={tick} className="number">
            {span(total * tick)}
          </span>
        ))}
      </div>
      <ul>
        {rows.map((node) => (
          <li key={node.nodeId}>
            <button
              type="button"
              className={styles.row}
              aria-pressed={node.nodeId === selected}
              onClick={() => onSelect(node.nodeId)}
            >
              <span className={styles.name} title={node.nodeId}>
                <span className={styles.shape} data-hue={markOf(node.state)[0]} aria-hidden="true">
                  {markOf(node.state)[1]}
                </span>
                {node.nodeId}
                <span className="hidden">{markOf(node.state)[2]}</span>
              </span>
              <Bars node={node} from={from} total={total} until={until} />
              <span className={`number ${styles.took}`}>{span(tookOf(node, until))}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

function tookOf({ spans }: NodeView, until: number): number {
  const first = spans[0];
  return first ? (spans.at(-1)?.to ?? until) - first.from : 0;
}

interface BarsProps {
  readonly node: NodeView;
  readonly from: number;
  readonly total: number;
  readonly until: number;
}

function Bars({ node, from, total, until }: BarsProps) {
  return (
    <span className={styles.track}>
      {node.spans.map((bar) => (
        <span
          key={`${bar.from}-${bar.state}`}
          className={styles.bar}
          data-state={bar.state}
          data-end={bar.end ?? (bar.to === undefined ? 'open' : undefined)}
          style={{
            left: `${((bar.from - from) / total) * 100}%`,
            width: `max(3px, ${(((bar.to ?? until) - bar.from) / total) * 100}%)`,
          }}
        />
      ))}
    </span>
  );
}
