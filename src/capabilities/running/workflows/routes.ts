import { Type } from 'typebox';
import { completeWorkflow } from '../../../engine/definition/complete.ts';
import { isRefusal, NOT_FOUND, refuse } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { AuthoredWorkflow, WorkflowDefinition, WorkflowSummary } from '../../../protocol/running/workflows.ts';
import type { WorkflowCursor } from '../../../store/definitions.ts';
import { ListQuery, Page, pageOf, pageRequest } from '../../page.ts';
import { NO_CONTENT, reply, route, transact } from '../../request.ts';
import type { RegisteredWorkflow, Workflows } from './door.ts';

/** What the handlers of workflow routes use. */
interface Services {
  readonly workflows: Workflows;
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
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const found = await workflows.list(caller, placeAfter(page.after), page.limit + 1);
    return reply(200, pageOf(found, page, summaryOf, placeOf));
  },
});

function placeOf({ updatedAt, definition }: RegisteredWorkflow): string {
  return `${updatedAt}.${definition.id}`;
}

function placeAfter(place: string | undefined): WorkflowCursor {
  const [, updatedAt, workflowId] = /^(\d+)\.(.*)$/.exec(place ?? '') ?? [];
  return { updatedAt: Number(updatedAt ?? Number.MAX_SAFE_INTEGER), workflowId: workflowId ?? '' };
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
export const routes = [getWorkflow, listWorkflows, registerWorkflow, readWorkflow, replaceWorkflow, deleteWorkflow];
