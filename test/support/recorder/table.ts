import type { Answer } from '../api.ts';

/** A part of a body, and the published schema that it must fit. */
export interface Part {
  readonly schema: string;
  readonly value: unknown;
}

type Body = Answer['body'];
type Row = (body: Body) => readonly Part[];

const whole =
  (schema: string): Row =>
  (body) => [{ schema, value: body }];

const each =
  (list: string, schema: string): Row =>
  (body) =>
    (body[list] as readonly unknown[]).map((value) => ({ schema, value }));

/** Of an object to which the host adds fields of its own, only the fields of the protocol. */
const fields =
  (schema: string, ...names: readonly string[]): Row =>
  (body) => [{ schema, value: pick(body, names) }];

function pick(value: Body, names: readonly string[]): object {
  return Object.fromEntries(names.filter((name) => name in value).map((name) => [name, value[name]]));
}

const MEMORY_ENTRY = ['id', 'content', 'tags', 'createdAt', 'expiresAt'];

/**
 * The published schema of each answer for which the protocol has one. Answers of other operations are held against the
 * project's own documents alone.
 */
const TABLE: Readonly<Record<string, Row>> = {
  'GET /.well-known/openwop 200': whole('capabilities'),
  'GET /v1/audit/verify 200': whole('audit-verify-result'),
  'POST /v1/runs/{runId}/annotations 201': whole('annotation'),
  'GET /v1/runs/{runId}/annotations 200': each('annotations', 'annotation'),
  'GET /v1/workflows/{workflowId} 200': whole('workflow-definition'),
  'GET /v1/host/capstan/workflows/{workflowId} 200': whole('workflow-definition'),
  'GET /v1/prompts 200': each('items', 'prompt-template'),
  'POST /v1/prompts 201': whole('prompt-template'),
  'GET /v1/prompts/{templateId} 200': whole('prompt-template'),
  'PUT /v1/prompts/{templateId} 200': whole('prompt-template'),
  'GET /v1/host/capstan/packs/lockfile 200': whole('pack-lockfile'),
  'GET /v1/agents 200': whole('agent-inventory-response'),
  'GET /v1/agents/{agentId} 200': whole('agent-inventory-response#/$defs/AgentInventoryEntry'),
  'GET /v1/tools 200': each('tools', 'tool-descriptor'),
  'GET /v1/tools/{toolId} 200': whole('tool-descriptor'),
  'GET /v1/runs/{runId} 200': whole('run-snapshot'),
  'GET /v1/host/capstan/runs/{runId}/state 200': whole('run-snapshot'),
  'GET /v1/interrupts/{token} 200': fields('suspend-request', 'kind', 'key', 'resumeSchema', 'timeoutMs', 'data'),
  'GET /v1/runs/{runId}/events 200': each('events', 'run-event'),
  'GET /v1/runs/{runId}/events/poll 200': each('events', 'run-event'),
  'GET /v1/runs/{runId}:diff 200': whole('run-diff-response'),
  'GET /v1/runs/{runId}/ancestry 200': whole('run-ancestry-response'),
  'GET /v1/runs/{runId}/debug-bundle 200': (body) => [
    { schema: 'debug-bundle', value: body },
    ...each('events', 'run-event')(body),
  ],
  'GET /v1/proposals 200': each('proposals', 'proposal'),
  'GET /v1/proposals/{proposalId} 200': whole('proposal'),
  'PATCH /v1/proposals/{proposalId} 200': whole('proposal'),
  'DELETE /v1/proposals/{proposalId} 200': whole('proposal'),
  'POST /v1/proposals/{proposalId}/reject 200': whole('proposal'),
  'POST /v1/host/capstan/proposals:synthesize 200': each('created', 'proposal'),
  'POST /v1/host/sample/test/proposals 201': whole('proposal'),
  'GET /v1/goals 200': each('goals', 'goal'),
  'POST /v1/goals 200': whole('goal'),
  'GET /v1/goals/{goalId} 200': whole('goal'),
  'PATCH /v1/goals/{goalId} 200': whole('goal'),
  'POST /v1/goals/{goalId} 200': whole('goal'),
  'POST /v1/goals/{goalId}/pause 200': whole('goal'),
  'POST /v1/goals/{goalId}/resume 200': whole('goal'),
  'POST /v1/goals/{goalId}/abandon 200': whole('goal'),
  'GET /v1/host/capstan/memory 200': (body) =>
    body.items.flatMap((item: Body) => fields('memory-entry', ...MEMORY_ENTRY)(item)),
  'GET /v1/host/capstan/memory/{memoryId} 200': fields('memory-entry', ...MEMORY_ENTRY),
};

/** Operations and statuses for which there is a published schema. */
export const MAPPED = Object.keys(TABLE);

/** What of a body must fit which published schema. */
export function partsOf(operation: string, status: number, body: Body): readonly Part[] {
  return TABLE[`${operation} ${status}`]?.(body) ?? [];
}
