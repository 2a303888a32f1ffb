import { Type } from 'typebox';
import { completeWorkflow } from '../../../engine/definition/complete.ts';
import { isRefusal, NOT_FOUND, refuse } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { RunParams } from '../../../protocol/running/runs.ts';
import {
  AuthoredWorkflow,
  NodeTypeSummary,
  WorkflowDefinition,
  WorkflowSummary,
  WorkflowVersion,
  WorkflowWarning,
} from '../../../protocol/running/workflows.ts';
import type { NodeType } from '../../../runtime/node-type.ts';
import { LIST_START, ListQuery, numberAndIdIn, numberIn, Page, pageFrom, readPage } from '../../page.ts';
import { NO_CONTENT, reply, route, transact } from '../../request.ts';
import type { RegisteredWorkflow, StoredVersion, Workflows } from './door.ts';

/** What the handlers of workflow routes use. */
interface Services {
  readonly workflows: Workflows;
  readonly nodeTypes: readonly NodeType[];
}
const operation = route<Services>();

const WorkflowParams = Closed({ workflowId: Type.String({ minLength: 1, maxLength: 128 }) });

const getWorkflow = operation({
  operationId: 'getWorkflow',
  summary: 'Get a workflow definition',
  method: 'GET',
  path: '/v1/workflows/{workflowId}',
  scope: 'manifest:read',
  params: WorkflowParams,
  replies: { 200: WorkflowDefinition },
  refusals: [404],
  handle: async ({ caller, params }, { workflows }) => {
    const found = await workflows.find(caller, params.workflowId);
    return found ? reply(200, found.definition) : NOT_FOUND;
  },
});

const listWorkflows = operation({
  operationId: 'listWorkflows',
  summary: 'List the workflows that the caller may run, most recently changed first',
  method: 'GET',
  path: '/v1/host/capstan/workflows',
  scope: 'manifest:read',
  query: ListQuery({}),
  replies: { 200: Page(WorkflowSummary) },
  refusals: [400],
  handle: async ({ caller, query }, { workflows }) => {
    const page = pageFrom(query, numberAndIdIn);
    if (isRefusal(page)) return page;
    const found = readPage(page, {
      read: (after, limit) => {
        const { number: updatedAt, id: workflowId } = after ?? LIST_START;
        return workflows.list(caller, { updatedAt, workflowId }, limit);
      },
      show: summaryOf,
      positionOf: placeOf,
      sourceOf: ({ definition }) => definition,
    });
    return reply(200, await found);
  },
});

function placeOf({ updatedAt, definition }: RegisteredWorkflow): string {
  return `${updatedAt}.${definition.id}`;
}

const registerWorkflow = operation({
  operationId: 'registerWorkflow',
  summary: 'Register a workflow',
  method: 'POST',
  path: '/v1/host/capstan/workflows',
  scope: 'workflows:write',
  body: AuthoredWorkflow,
  invalidBodyStatus: 422,
  replies: { 201: WorkflowSummary },
  refusals: [400, 409, 422],
  handle: ({ caller, body }, { workflows }) =>
    transact(
      () => workflows.register(caller, completeWorkflow(body)),
      (workflow) => reply(201, summaryOf(workflow)),
    ),
});

const replaceWorkflow = operation({
  operationId: 'replaceWorkflow',
  summary: 'Replace a workflow with a new version; existing runs keep theirs',
  method: 'PUT',
  path: '/v1/host/capstan/workflows/{workflowId}',
  scope: 'workflows:write',
  params: WorkflowParams,
  body: AuthoredWorkflow,
  invalidBodyStatus: 422,
  replies: { 200: WorkflowSummary },
  refusals: [400, 404, 409, 422],
  handle: ({ caller, params, body }, { workflows }) => {
    if (body.id !== params.workflowId) {
      return refuse('validation_error', 'The id in the body differs from the id in the path.', { field: 'id' });
    }
    return transact(
      () => workflows.replace(caller, completeWorkflow(body)),
      (workflow) => reply(200, summaryOf(workflow)),
    );
  },
});

const readWorkflow = operation({
  ...getWorkflow,
  operationId: 'readWorkflow',
  path: '/v1/host/capstan/workflows/{workflowId}',
  params: WorkflowParams,
});

const deleteWorkflow = operation({
  operationId: 'deleteWorkflow',
  summary: 'Remove a workflow; existing runs continue',
  method: 'DELETE',
  path: '/v1/host/capstan/workflows/{workflowId}',
  scope: 'workflows:write',
  params: WorkflowParams,
  replies: { 204: 'nothing' },
  refusals: [404, 409],
  handle: ({ caller, params }, { workflows }) =>
    transact(
      () => workflows.remove(caller, params.workflowId),
      () => NO_CONTENT,
    ),
});

const validateWorkflow = operation({
  operationId: 'validateWorkflow',
  summary: 'Check a workflow as registering it would, without storing it',
  method: 'POST',
  path: '/v1/host/capstan/workflows:validate',
  scope: 'workflows:write',
  body: AuthoredWorkflow,
  invalidBodyStatus: 422,
  replies: { 200: Type.Object({ warnings: Type.Array(WorkflowWarning) }) },
  refusals: [400, 409, 422],
  handle: async ({ caller, body }, { workflows }) => {
    const warnings = await workflows.validate(caller, completeWorkflow(body));
    return isRefusal(warnings) ? warnings : reply(200, { warnings });
  },
});

const listWorkflowVersions = operation({
  operationId: 'listWorkflowVersions',
  summary: 'List the versions of a workflow, newest first',
  method: 'GET',
  path: '/v1/host/capstan/workflows/{workflowId}/versions',
  scope: 'manifest:read',
  params: WorkflowParams,
  query: ListQuery({}),
  replies: { 200: Page(WorkflowVersion) },
  refusals: [400, 404],
  handle: async ({ caller, params, query }, { workflows }) => {
    const page = pageFrom(query, numberIn);
    if (isRefusal(page)) return page;
    const versionsAfter = (after = Number.MAX_SAFE_INTEGER, limit: number) =>
      workflows.versions(caller, params.workflowId, after, limit);
    if (!(await versionsAfter(page.after, 1))) return NOT_FOUND;
    const found = readPage(page, {
      read: async (after, limit) => (await versionsAfter(after, limit)) ?? [],
      show: versionOf,
      positionOf: ({ version }) => `${version}`,
      sourceOf: ({ definition }) => definition,
    });
    return reply(200, await found);
  },
});

const getWorkflowVersion = operation({
  operationId: 'getWorkflowVersion',
  summary: 'Get a version of a workflow definition',
  method: 'GET',
  path: '/v1/host/capstan/workflows/{workflowId}/versions/{version}',
  scope: 'manifest:read',
  params: Closed({ ...WorkflowParams.properties, version: Type.String({ pattern: '^[0-9]{1,9}$' }) }),
  replies: { 200: WorkflowDefinition },
  refusals: [400, 404],
  handle: async ({ caller, params }, { workflows }) => {
    const found = await workflows.version(caller, params.workflowId, Number(params.version));
    return found ? reply(200, found) : NOT_FOUND;
  },
});

const getRunWorkflow = operation({
  operationId: 'getRunWorkflow',
  summary: 'Get the workflow definition that a run is pinned to',
  method: 'GET',
  path: '/v1/host/capstan/runs/{runId}/workflow',
  scope: 'manifest:read',
  params: RunParams,
  replies: { 200: WorkflowDefinition },
  refusals: [404],
  handle: async ({ caller, params }, { workflows }) => {
    const found = await workflows.ofRun(caller, params.runId);
    return found ? reply(200, found) : NOT_FOUND;
  },
});

const listNodeTypes = operation({
  operationId: 'listNodeTypes',
  summary: 'List the node types of this host, with the schemas of their configs',
  method: 'GET',
  path: '/v1/host/capstan/node-types',
  scope: 'manifest:read',
  replies: { 200: Type.Object({ items: Type.Array(NodeTypeSummary) }) },
  handle: (_request, { nodeTypes }) => reply(200, { items: nodeTypes.map(nodeTypeOf) }),
});

function nodeTypeOf(type: NodeType): NodeTypeSummary {
  const { typeId, description, role, isGate = false, config, outputs } = type;
  return {
    typeId,
    description,
    role,
    gate: isGate,
    config: { ...(config ?? NO_CONFIG) },
    ...inputPorts(type),
    // A function that takes the node looks at its config or inputs, which there are none of here.
    ...(outputs?.length === 0 ? { outputs: [...outputs({ config: {}, inputs: {} })] } : {}),
  };
}

function inputPorts({ inputs, requiredInputs = [] }: NodeType): Pick<NodeTypeSummary, 'inputs' | 'inputsOpen'> {
  const known = (inputs ?? requiredInputs).map((name) => ({ name, required: requiredInputs.includes(name) }));
  return { inputs: known, inputsOpen: inputs === undefined };
}

const NO_CONFIG = { type: 'object', properties: {} };

function versionOf({ definition, version, isCurrent, createdAt }: StoredVersion): object {
  return {
    registeredVersion: version,
    version: definition.version,
    name: definition.name,
    nodes: definition.nodes.length,
    current: isCurrent,
    createdAt: new Date(createdAt).toISOString(),
  };
}

function summaryOf({ definition, version, isShared, updatedAt, warnings }: RegisteredWorkflow): object {
  return {
    id: definition.id,
    name: definition.name,
    ...(definition.description === undefined ? {} : { description: definition.description }),
    version: definition.version,
    registeredVersion: version,
    nodes: definition.nodes.length,
    shared: isShared,
    updatedAt: new Date(updatedAt).toISOString(),
    ...(warnings && warnings.length > 0 ? { warnings } : {}),
  };
}

/** The routes of workflows. */
export const routes = [
  getWorkflow,
  listWorkflows,
  registerWorkflow,
  readWorkflow,
  replaceWorkflow,
  deleteWorkflow,
  validateWorkflow,
  listWorkflowVersions,
  getWorkflowVersion,
  getRunWorkflow,
  listNodeTypes,
];
