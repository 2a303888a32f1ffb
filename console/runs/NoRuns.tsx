import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMay } from '../api/session.ts';
import { workflowsQuery } from '../api/workflows.ts';
import { Empty } from '../parts/States.tsx';

/** The example that a first start of the host installs. */
const EXAMPLE = 'support-triage';

/** A list without runs: what a run is, and how to start the first one. */
export function NoRuns() {
  const may = useMay();
  const { data: workflows } = useQuery({ ...workflowsQuery, enabled: may('manifest:read') });
  const hasExample = workflows?.some(({ id }) => id === EXAMPLE) ?? false;
  return (
    <Empty
      title="No runs yet"
      action={<Link to="/workflows">{workflows?.length === 0 ? 'Make a workflow' : 'Choose a workflow'}</Link>}
    >
      A run is one execution of a workflow. Start one from the page of its workflow
      {hasExample && (
        <>
          , or the example in a terminal:{' '}
          <code>npx capstan runs start {EXAMPLE} --set subject='I cannot log in' --set plan=pro</code>
        </>
      )}
      .
    </Empty>
  );
}
