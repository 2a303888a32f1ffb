import { Type } from 'typebox';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { WorkflowDefinition, WorkflowSummary } from '../../../protocol/running/workflows.ts';
import type { WorkflowPlace } from '../../../store/definitions.ts';
import { ListQuery, Page, pageOf, pageRequest } from '../../page.ts';
import { type Answer, type Reply, reply, route } from '../../request.ts';
import type { RegisteredWorkflow, WorkflowService } from './service.ts';

interface Services {
  readonly workflows: WorkflowService;
}
const operation = route<Services>();

const WorkflowParams = Closed({ workflowId: Type.String({ minLength: 1, maxLength: 128 }) });

export const getWorkflow = operation({
  operationId: 'getWorkflow',
  summary: 'A workflow definition',
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

export const listWorkflows = operation({
  operationId: 'listWorkflows',
  summary: 'The workflows that the caller may run, what was changed last first',
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

function placeAfter(place: string | undefined): WorkflowPlace {
  const [, updatedAt, workflowId] = /^(\d+)\.(.*)$/.exec(place ?? '') ?? [];
  return { updatedAt: Number(updatedAt ?? Number.MAX_SAFE_INTEGER), workflowId: workflowId ?? '' };
}

export const registerWorkflow = operation({
  operationId: 'registerWorkflow',
  summary: 'Register a workflow',
  method: 'POST',
  path: '/v1/host/capstan/workflows',
  scope: 'workflows:write',
  body: WorkflowDefinition,
  misfitStatus: 422,
  replies: { 201: WorkflowSummary },
  refusals: [400, 409, 422],
  handle: async (request, { workflows }) => {
    const outcome = await workflows.register(request.caller, request.body, (done) =>
      request.remember(summary(201, done)),
    );
    return shown(201, outcome);
  },
});

export const replaceWorkflow = operation({
  operationId: 'replaceWorkflow',
  summary: 'Replace a workflow by a new version; runs keep the one they began with',
  method: 'PUT',
  path: '/v1/host/capstan/workflows/{workflowId}',
  scope: 'workflows:write',
  params: WorkflowParams,
  body: WorkflowDefinition,
  misfitStatus: 422,
  replies: { 200: WorkflowSummary },
  refusals: [400, 404, 409, 422],
  handle: async (request, { workflows }) => {
    const { workflowId } = request.params;
    if (request.body.id !== workflowId) {
      return refuse('validation_error', 'The id in the body is not the one in the path.', { field: 'id' });
    }
    if (!(await workflows.find(request.caller, workflowId))) return NOT_FOUND;
    const outcome = await workflows.register(request.caller, request.body, (done) =>
      request.remember(summary(200, done)),
    );
    return shown(200, outcome);
  },
});

export const readWorkflow = operation({
  ...getWorkflow,
  operationId: 'readWorkflow',
  path: '/v1/host/capstan/workflows/{workflowId}',
  params: WorkflowParams,
});

export const deleteWorkflow = operation({
  operationId: 'deleteWorkflow',
  summary: 'Remove a workflow; runs that have begun go on',
  method: 'DELETE',
  path: '/v1/host/capstan/workflows/{workflowId}',
  scope: 'workflows:write',
  params: WorkflowParams,
  replies: { 204: 'nothing' },
  refusals: [404, 409],
  handle: async (request, { workflows }) => {
    const done: Reply = { status: 204 };
    const removed = await workflows.remove(request.caller, request.params.workflowId, () => request.remember(done));
    if (isRefusal(removed)) return removed;
    return removed ? done : NOT_FOUND;
  },
});

function shown(status: number, outcome: RegisteredWorkflow | Refusal): Answer {
  return isRefusal(outcome) ? outcome : summary(status, outcome);
}

function summary(status: number, workflow: RegisteredWorkflow): Reply {
  return reply(status, summaryOf(workflow));
}

function summaryOf({ definition, version, isShared, updatedAt }: RegisteredWorkflow): object {
  return {
    id: definition.id,
    name: definition.name,
    ...(definition.description === undefined ? {} : { description: definition.description }),
    version: definition.version,
    registeredVersion: version,
    nodes: definition.nodes.length,
    shared: isShared,
    updatedAt: new Date(updatedAt).toISOString(),
  };
}

export const routes = [getWorkflow, listWorkflows, registerWorkflow, readWorkflow, replaceWorkflow, deleteWorkflow];
