import { Link } from '@tanstack/react-router';
import { useMay } from '../api/session.ts';
import { Copy } from '../parts/Copy.tsx';
import { useNow } from '../parts/Time.tsx';
import { span } from '../parts/time.ts';
import styles from './Outcome.module.css';
import type { WorkerWait } from './view.ts';
import { NodeButton } from './Warnings.tsx';

interface NeededProps {
  readonly waits: readonly WorkerWait[];
  readonly onNode: (nodeId: string) => void;
}

/** That the run waits for a worker, for how long, and what to start. */
export function WorkerNeeded({ waits, onNode }: NeededProps) {
  const now = useNow(1_000);
  const may = useMay();
  const types = [...new Set(waits.map(({ typeId }) => typeId))];
  const [first] = waits;
  if (!first) return null;
  const isBusy = waits.every(({ isServed }) => isServed);
  const command = commandFor(waits);
  return (
    <section className={styles.waits} aria-label="Waiting for a worker">
      <h2>
        Waiting for a worker that serves <code>{types.join(', ')}</code>
      </h2>
      <ul>
        {waits.map(({ nodeId, since }) => (
          <li key={nodeId}>
            <NodeButton nodeId={nodeId} onNode={onNode} /> has waited for{' '}
            <span className="number">{span(now - since)}</span>.
          </li>
        ))}
      </ul>
      {isBusy ? (
        <p>
          All workers that serve it are busy. The run continues as soon as one is free. Start more workers to shorten
          the wait.
        </p>
      ) : (
        <p>
          No worker asks for it. Start one with the code of this node type, with a key that has the scope workers:serve:
        </p>
      )}
      {!isBusy && (
        <p className={styles.command}>
          <code>{command}</code>
          <Copy text={command} label="command" />
        </p>
      )}
      {may('workers:serve') && (
        <p>
          <Link to="/operations" search={{ section: 'workers' }}>
            All worker types and open attempts
          </Link>
        </p>
      )}
    </section>
  );
}

/** The folder is the reader's to fill in. */
function commandFor(waits: readonly WorkerWait[]): string {
  const pool = waits.find(({ pool: known }) => known !== undefined && known !== 'default')?.pool;
  return `capstan worker --project my-project${pool === undefined ? '' : ` --pool ${pool}`}`;
}
