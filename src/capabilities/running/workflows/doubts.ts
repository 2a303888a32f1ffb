import { definitionDoubts } from '../../../engine/definition/doubts.ts';
import type { WorkflowDefinition, WorkflowNode, WorkflowWarning } from '../../../protocol/running/workflows.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { findWorkflow, type WorkflowRow } from '../../../store/definitions.ts';
import type { Visibility } from '../../../store/log.ts';

/** Looks for what is allowed in a valid definition and yet probably not meant, such as a model that the host lacks. */
export type WorkflowDoubt = (user: Visibility, definition: WorkflowDefinition) => Promise<readonly WorkflowWarning[]>;

/** A warning about a node's config; `path` is relative to the node. */
type NodeDoubt = Pick<WorkflowWarning, 'path' | 'message'>;

/** More would not help an author. */
const WARNINGS_MAX = 20;
/** Names that are looked up for one definition. */
const LOOKUPS_MAX = 100;

/** Asks about every node of a definition and completes the paths of what is found. */
export async function doubtsOfNodes(
  { nodes }: WorkflowDefinition,
  ask: (node: WorkflowNode) => Promise<readonly NodeDoubt[]> | readonly NodeDoubt[],
): Promise<WorkflowWarning[]> {
  const found = await Promise.all(nodes.slice(0, LOOKUPS_MAX).map(ask));
  return found.flatMap((doubts, index) =>
    doubts.map(({ path, message }) => ({ path: `nodes[${index}]${path}`, message, nodeId: nodes[index]!.id })),
  );
}

/** What is doubtful about a definition that may be registered: in itself, and on this host. */
export async function warningsFor(
  definition: WorkflowDefinition,
  user: Visibility,
  {
    runtime,
    doubts,
  }: { readonly runtime: Pick<Runtime, 'catalog' | 'store'>; readonly doubts: readonly WorkflowDoubt[] },
): Promise<WorkflowWarning[]> {
  const elsewhere = [...doubts, missingWorkflows(runtime)].map((doubt) => doubt(user, definition));
  const found = [...definitionDoubts(definition, runtime.catalog), ...(await Promise.all(elsewhere)).flat()];
  return found
    .slice(0, WARNINGS_MAX)
    .map(({ path, message, nodeId }) => ({ path, message, ...(nodeId === undefined ? {} : { nodeId }) }));
}

/** Node types whose config names a workflow that they run. */
const STARTING: ReadonlySet<string> = new Set(['core.subWorkflow', 'vendor.capstan.flow.for-each']);

/** A child workflow may be registered later, but before the first run. */
function missingWorkflows({ store }: Pick<Runtime, 'store'>): WorkflowDoubt {
  return (user, definition) =>
    doubtsOfNodes(definition, async ({ typeId, config: { workflowId } }) => {
      if (!STARTING.has(typeId) || typeof workflowId !== 'string' || workflowId === definition.id) return [];
      const [row] = await store.read<WorkflowRow>(findWorkflow(user, workflowId));
      if (row) return [];
      const message = `There is no workflow ${JSON.stringify(workflowId)} yet. Register it before the first run.`;
      return [{ path: '.config.workflowId', message }];
    });
}
