import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { isRefusal, refuse } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { once } from '../../../protocol/format/once.ts';
import { AnyObject, NonEmpty } from '../../../protocol/format/schema.ts';
import { WorkflowDefinition, type WorkflowEdge } from '../../../protocol/running/workflows.ts';
import { schemaProblemsByPointer } from '../../../runtime/catalog.ts';
import { reply, route, transact } from '../../request.ts';
import type { Workflows } from '../../running/workflows/door.ts';
import type { Switches } from '../switches.ts';

interface Services {
  readonly workflows: Workflows;
  readonly switches: Switches;
}

const Sketch = Type.Object({
  workflowId: Type.Optional(NonEmpty),
  id: Type.Optional(NonEmpty),
  nodes: Type.Array(
    Type.Object({
      nodeId: Type.Optional(NonEmpty),
      id: Type.Optional(NonEmpty),
      typeId: NonEmpty,
      config: Type.Optional(AnyObject),
    }),
    { minItems: 1 },
  ),
});

const definitions = once(() => Compile(WorkflowDefinition));

/** Registers a workflow from less than a definition: suites leave out what they do not care about. */
export const registerSketch = route<Services>()({
  operationId: 'seamRegisterWorkflow',
  summary: 'Test seam: register a workflow from its nodes alone',
  method: 'POST',
  path: '/v1/host/sample/workflows',
  scope: 'workflows:write',
  body: Sketch,
  replies: { 201: Type.Object({ workflowId: Type.String(), version: Type.Integer() }) },
  refusals: [400, 409, 422],
  handle: ({ caller, body }, { workflows, switches }) => {
    const refusal = switches.check(caller.subject.tenant, body.nodes);
    if (refusal) return refusal;
    const definition = completed(exposed(body));
    if (isRefusal(definition)) return definition;
    return transact(
      () => workflows.register(caller, definition),
      ({ version }) => reply(201, { workflowId: definition.id, version }),
    );
  },
});

/** Suites expose a workflow to MCP by a node with the tool's name and arguments, this host by the workflow's own. */
function exposed(sketch: JsonObject & Sketched): JsonObject & Sketched {
  const node = sketch.nodes.find(({ typeId }) => typeId === 'core.openwop.mcp.expose-tool');
  if (!node) return sketch;
  const { name, description, inputSchema } = { name: sketch.workflowId, ...node.config } as Exposed;
  const { properties = {}, required = [] } = inputSchema ?? {};
  const variables = Object.entries(properties).map(([key, { type = 'object' }]) => ({
    name: key,
    type,
    required: required.includes(key),
  }));
  const nodes = sketch.nodes.map((each) => (each === node ? { ...each, typeId: 'core.noop', config: {} } : each));
  return { ...sketch, id: name, nodes, variables, metadata: { mcp: { exposeAsTool: true, description } } };
}

interface Exposed {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema?: {
    readonly properties?: Readonly<Record<string, { readonly type?: string }>>;
    readonly required?: readonly string[];
  };
}

/** The definition that a sketch stands for. Nodes without edges follow each other, and a dispatch leads back. */
function completed({ workflowId, id = workflowId, nodes: sketched, ...rest }: JsonObject & Sketched) {
  const nodes = sketched.map(({ nodeId, id: own = nodeId, ...node }, index) => ({
    name: own,
    position: { x: index * 200, y: 0 },
    config: {},
    inputs: {},
    ...node,
    id: own,
  }));
  const definition: unknown = {
    name: id,
    version: '1.0',
    edges: edgesOf(nodes),
    triggers: [{ id: 'manual', type: 'manual', enabled: true }],
    variables: [],
    metadata: {},
    settings: {},
    ...rest,
    id,
    nodes,
  };
  if (definitions().Check(definition)) return definition;
  const fields = schemaProblemsByPointer(definitions(), definition);
  return refuse('validation_error', `${fields[0]?.path ?? ''} ${fields[0]?.message ?? 'is not a workflow'}.`, {
    fields,
  });
}

interface Sketched {
  readonly workflowId?: string;
  readonly id?: string;
  readonly nodes: readonly {
    readonly nodeId?: string;
    readonly id?: string;
    readonly typeId: string;
    readonly config?: JsonObject;
  }[];
}

function edgesOf(nodes: readonly { readonly id: string | undefined; readonly typeId: string }[]): WorkflowEdge[] {
  const edge = (source = '', target = ''): WorkflowEdge => ({
    id: `${source}-${target}`,
    sourceNodeId: source,
    targetNodeId: target,
  });
  return nodes.slice(1).flatMap(({ id, typeId }, index) => {
    const before = nodes[index]!.id;
    return [edge(before, id), ...(typeId === 'core.dispatch' ? [edge(id, before)] : [])];
  });
}
