import { Link } from '@tanstack/react-router';
import { RefusedError } from '../../src/client/index.ts';
import { Empty, Problem } from '../parts/States.tsx';

interface UnknownProps {
  readonly runId: string;
  readonly error: unknown;
  readonly onRetry: () => void;
}

/** Why a run cannot be shown; one that the host does not know is named, with a way to those that it does. */
export function UnknownRun({ runId, error, onRetry }: UnknownProps) {
  if (!(error instanceof RefusedError && error.status === 404)) return <Problem error={error} onRetry={onRetry} />;
  return (
    <Empty title="There is no such run" action={<Link to="/runs">Show all runs</Link>}>
      The host has no run <code>{runId}</code> that you may see. The id may be mistyped or of another tenant, or the run
      was removed because it was older than the host keeps runs.
    </Empty>
  );
}
