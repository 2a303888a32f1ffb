import { useQuery } from '@tanstack/react-query';
import type { RunEvent } from '../../src/client/index.ts';
import type { JsonObject } from '../../src/protocol/format/json.ts';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import type { WorkflowDefinition, WorkflowNode } from '../../src/protocol/running/workflows.ts';
import { JsonTree } from '../parts/JsonTree.tsx';
import { loaded } from '../parts/loaded.ts';
import { counted } from '../parts/numbers.ts';
import { sourceOf } from './inputs.ts';
import styles from './NodeInputs.module.css';

interface InputsProps {
  readonly run: RunSnapshot;
  readonly events: readonly RunEvent[];
  readonly definition: WorkflowDefinition;
  readonly node: WorkflowNode;
  /** The last start of the node; undefined if it has not started. */
  readonly started: RunEvent | undefined;
}

/** The inputs of a node: the values that its last attempt got, and in small print where they come from. */
export function NodeInputs({ run, events, definition, node, started }: InputsProps) {
  const sequence = started?.sequence ?? -1;
  const { data } = useQuery({
    queryKey: ['node-inputs', run.runId, node.id, sequence],
    queryFn: async () => {
      const { resolvedInputs } = await loaded(() => import('./node-inputs.ts'));
      return resolvedInputs(run, events.slice(0, sequence + 1), definition, node.id) ?? null;
    },
    enabled: started !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const ports = Object.entries(node.inputs);
  const extra = Object.keys(data?.delivered ?? {}).length;
  if (ports.length === 0 && extra === 0) return null;
  return (
    <section>
      <h3>Inputs</h3>
      <dl className={styles.ports}>
        {ports.map(([name, port]) => (
          <div key={name} className={styles.port}>
            <dt>{name}</dt>
            <dd>
              {data && <PortValue name={name} values={data.declared} />}
              <span className={styles.source}>{sourceOf(port)}</span>
            </dd>
          </div>
        ))}
      </dl>
      {data?.problem !== undefined && <p className={styles.problem}>{data.problem}</p>}
      {started && data === null && <p className="quiet">The values cannot be computed here.</p>}
      {!started && <p className="quiet">The values are computed when the node starts.</p>}
      {data && extra > 0 && (
        <details open={ports.length === 0}>
          <summary className="quiet">
            {ports.length === 0 ? 'Delivered to it' : counted(extra, 'other value', 'other values')}
          </summary>
          <JsonTree value={data.delivered} />
        </details>
      )}
    </section>
  );
}

function PortValue({ name, values }: { readonly name: string; readonly values: JsonObject }) {
  if (!Object.hasOwn(values, name)) return <span className="quiet">no value</span>;
  return <JsonTree value={values[name]} depth={1} />;
}
