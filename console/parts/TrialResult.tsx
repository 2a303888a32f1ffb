import { Link } from '@tanstack/react-router';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import { outputsOf } from '../api/trials.ts';
import { JsonTree } from './JsonTree.tsx';
import { counted, dollars } from './numbers.ts';
import { StateMark } from './StateMark.tsx';
import styles from './TrialResult.module.css';

/** What came of a node that was tried. An answer of a model is shown as text. */
export function TrialResult({ run }: { readonly run: RunSnapshot }) {
  const outputs = outputsOf(run);
  const cost = run.metrics?.openwopCost;
  const content = outputs?.content;
  return (
    <section className={styles.result} aria-label="Result">
      <p className={styles.line}>
        <StateMark state={run.status} />
        {cost?.tokens && (
          <span className="quiet number">
            {counted((cost.tokens.input ?? 0) + (cost.tokens.output ?? 0), 'token')}
            {cost.usd === undefined ? '' : ` · ${dollars(cost.usd)}`}
          </span>
        )}
        <Link to="/runs/$runId" params={{ runId: run.runId }} search={{}}>
          Open the run
        </Link>
      </p>
      {run.error && <p className={styles.problem}>{run.error.message}</p>}
      {typeof content === 'string' ? (
        <p className={styles.text} dir="auto">
          {content}
        </p>
      ) : (
        outputs && <JsonTree value={outputs} />
      )}
    </section>
  );
}
