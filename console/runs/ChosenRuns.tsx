import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { GitCompareArrows } from 'lucide-react';
import { client } from '../api/client.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { counted } from '../parts/numbers.ts';
import { complain, say, sayWithUndo } from '../parts/toasts.tsx';
import styles from './RunsPage.module.css';

interface ChosenProps {
  readonly chosen: ReadonlySet<string>;
  readonly onDone: () => void;
}

/** What can be done with the chosen runs: two are compared, any number is cancelled. */
export function ChosenRuns({ chosen, onDone }: ChosenProps) {
  const may = useMay();
  const navigate = useNavigate();
  const cancel = useCancel();
  const [runId = '', otherId = ''] = [...chosen];
  const start = (): void => {
    const runIds = [...chosen];
    onDone();
    sayWithUndo(`Cancelling ${counted(runIds.length, 'run')} …`, () => cancel.mutate(runIds));
  };
  return (
    <div className={styles.bulk}>
      <span className="number">{chosen.size} chosen</span>
      <Button
        icon={<GitCompareArrows />}
        disabled={chosen.size !== 2}
        title={chosen.size === 2 ? undefined : 'Choose two runs to compare them'}
        onClick={() => void navigate({ to: '/runs/$runId/compare/$otherId', params: { runId, otherId } })}
      >
        Compare
      </Button>
      {may('runs:cancel') && (
        <Button kind="danger" onClick={start}>
          Cancel
        </Button>
      )}
      <Button kind="quiet" onClick={onDone}>
        Clear
      </Button>
      {chosen.size !== 2 && <span className="quiet">Choose two to compare them.</span>}
    </div>
  );
}

function useCancel() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (runIds: string[]) => client.bulkCancelRuns({ runIds }),
    onSuccess: ({ results }) => {
      const done = results.filter(({ ok }) => ok).length;
      say(`${done} of ${counted(results.length, 'run')} cancelled.`);
      void cache.invalidateQueries({ queryKey: ['runs'] });
    },
    onError: complain,
  });
}
