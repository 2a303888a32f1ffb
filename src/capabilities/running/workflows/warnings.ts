import { definitionWarnings } from '../../../engine/definition/warnings.ts';
import type { WorkflowDefinition, WorkflowNode, WorkflowWarning } from '../../../protocol/running/workflows.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { findWorkflow, type WorkflowRow } from '../../../store/definitions.ts';
import type { Visibility } from '../../../store/log.ts';

/** Looks for what is allowed in a valid definition but probably not intended, such as a model that the host lacks. */
export type WorkflowCheck = (user: Visibility, definition: WorkflowDefinition) => Promise<readonly WorkflowWarning[]>;

/** A warning about a node's config; `path` is relative to the node. */
type NodeWarning = Pick<WorkflowWarning, 'path' | 'message'>;

/** More would not help an author. */
const WARNINGS_MAX = 20;
/** Names that are looked up for one definition. */
const LOOKUPS_MAX = 100;

/** Checks every node of a definition and completes the paths of the warnings. */
export async function nodeWarnings(
  { nodes }: WorkflowDefinition,
  check: (node: WorkflowNode) => Promise<readonly NodeWarning[]> | readonly NodeWarning[],
): Promise<WorkflowWarning[]> {
  const found = await Promise.all(nodes.slice(0, LOOKUPS_MAX).map(check));
  return found.flatMap((warnings, index) =>
    warnings.map(({ path, message }) => ({ path: `nodes[${index}]${path}`, message, nodeId: nodes[index]!.id })),
  );
}

/** The warnings about a definition that may be registered: about its text, and about what this host lacks. */
export async function warningsFor(
  definition: WorkflowDefinition,
  user: Visibility,
  {
    runtime,
    checks,
  }: { readonly runtime: Pick<Runtime, 'catalog' | 'store'>; readonly checks: readonly WorkflowCheck[] },
): Promise<WorkflowWarning[]> {
  const onThisHost = [...checks, missingWorkflows(runtime)].map((check) => check(user, definition));
  const found = [...definitionWarnings(definition, runtime.catalog), ...(await Promise.all(onThisHost)).flat()];
  return found
    .slice(0, WARNINGS_MAX)
    .map(({ path, message, nodeId }) => ({ path, message, ...(nodeId === undefined ? {} : { nodeId }) }));
}

/** Node types whose config names a workflow that they run. */
const STARTING: ReadonlySet<string> = new Set(['core.subWorkflow', 'vendor.capstan.flow.for-each']);

/** A child workflow may be registered later, but before the first run. */
function missingWorkflows({ store }: Pick<Runtime, 'store'>): WorkflowCheck {
  return (user, definition) =>
    nodeWarnings(definition, async ({ typeId, config: { workflowId } }) => {
      if (!STARTING.has(typeId) || typeof workflowId !== 'string' || workflowId === definition.id) return [];
      const [row] = await store.read<WorkflowRow>(findWorkflow(user, workflowId));
      if (row) return [];
      const message = `There is no workflow ${JSON.stringify(workflowId)} yet. Register it before the first run.`;
      return [{ path: '.config.workflowId', message }];
    });
}
