import { inactivityOf } from '../../../engine/definition/activity.ts';
import { argumentsSchema } from '../../../engine/definition/workflow-arguments.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { WorkflowDefinition } from '../../../protocol/running/workflows.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import {
  type CallableTool,
  fixedTools,
  type ToolCaller,
  type ToolSource,
  type WorkflowTool,
} from '../../../runtime/tools.ts';
import { listWorkflows, type WorkflowCursor, type WorkflowRow } from '../../../store/definitions.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Store } from '../../../store/store.ts';
import type { Storage, StorageScope } from '../../integrations/storage/door.ts';
import { nodeTools } from './node-tools.ts';

const HTTP_TIMEOUT_MS = 15_000;
/** Keeps web pages within what a model can read. */
const HTTP_BYTES_MAX = 100_000;
const WORKFLOW_SCOPE = 'capstan.workflow';
/** How many workflows are listed, the last changed first, how large they may be together, and how many are read at once. */
const WORKFLOWS_MAX = 1_000;
const DEFINITION_CHARACTERS_MAX = 8_000_000;
const PAGE = 20;
/** The key-value namespace of agents; nodes reach it under the same name. */
const NAMESPACE = 'agents';

/** The tools that every host offers to agents: workflows, some node types, HTTP GET and key-value storage. */
export function hostTools(runtime: Runtime, storage: Pick<Storage, 'perform'>): readonly ToolSource[] {
  return [
    workflows(runtime.plans, runtime.store),
    nodeTools(runtime),
    fixedTools('capstan.http', [httpGet(runtime)]),
    fixedTools('capstan.kv', [kvGet(storage), kvSet(storage)]),
  ];
}

/** Every workflow is the tool `capstan.workflow:<id>`. */
function workflows(plans: Runtime['plans'], store: Store): ToolSource {
  return {
    scope: WORKFLOW_SCOPE,
    kind: 'workflow',
    find: async (user, name) => {
      const pinned = await plans.current(user, name.slice(WORKFLOW_SCOPE.length + 1));
      return pinned && !inactivityOf(pinned.plan.definition) ? workflowTool(pinned.plan.definition) : undefined;
    },
    list: async (user) => {
      const tools: WorkflowTool[] = [];
      let room = DEFINITION_CHARACTERS_MAX;
      for await (const { body } of currentWorkflows(store, user)) {
        const definition = JSON.parse(body) as WorkflowDefinition;
        if (!inactivityOf(definition)) tools.push(workflowTool(definition));
        room -= body.length;
        if (room <= 0 || tools.length === WORKFLOWS_MAX) break;
      }
      return tools;
    },
  };
}

/** The workflows that somebody sees, the last changed first. */
async function* currentWorkflows(store: Store, user: Visibility): AsyncGenerator<WorkflowRow> {
  let after: WorkflowCursor | undefined = { updatedAt: Number.MAX_SAFE_INTEGER, workflowId: '' };
  while (after) {
    const rows: WorkflowRow[] = await store.read<WorkflowRow>(listWorkflows(user, after, PAGE));
    yield* rows;
    const last = rows[PAGE - 1];
    after = last && { updatedAt: last.updated_at, workflowId: last.workflow_id };
  }
}

/** A workflow may contain any node, so as a tool it counts as one that writes. */
function workflowTool(definition: WorkflowDefinition): WorkflowTool {
  const { id, name: title, description = title } = definition;
  return {
    name: `${WORKFLOW_SCOPE}:${id}`,
    title,
    description,
    inputSchema: argumentsSchema(definition),
    transport: 'native',
    safetyTier: 'write',
    egress: 'host-mediated',
    replayPolicy: 'non-deterministic',
    workflowId: id,
  };
}

const textOf = (description: string): JsonObject => ({ type: 'string', minLength: 1, description });

function closed(properties: JsonObject): JsonObject {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
}

function httpGet(runtime: Pick<Runtime, 'seams'>): CallableTool {
  return {
    name: 'capstan.http:get',
    description: 'Fetches what is at an address of the public network.',
    inputSchema: closed({ url: textOf('An http or https address') }),
    transport: 'http',
    safetyTier: 'read',
    egress: 'host-mediated',
    replayPolicy: 'non-deterministic',
    async call({ url }, by) {
      const request = { method: 'GET', headers: {}, isKeyed: false, failOn: [] };
      const limits = { timeoutMs: HTTP_TIMEOUT_MS, maxBytes: HTTP_BYTES_MAX };
      const { status, body, networkError } = await runtime.seams.http(
        { ...request, ...limits, url: url as string },
        by,
      );
      return networkError === undefined ? { status, body } : { status, networkError };
    },
  };
}

function kvGet(storage: Pick<Storage, 'perform'>): CallableTool {
  return {
    name: 'capstan.kv:get',
    description: 'Reads the value that was set under a key.',
    inputSchema: closed({ key: textOf('The key') }),
    transport: 'native',
    safetyTier: 'read',
    egress: 'none',
    replayPolicy: 'non-deterministic',
    call: ({ key }, by) => storage.perform(scopeOf(by), { op: 'get', namespace: NAMESPACE, key: key as string }),
  };
}

function kvSet(storage: Pick<Storage, 'perform'>): CallableTool {
  return {
    name: 'capstan.kv:set',
    description: 'Sets the value of a key, for good or until it is set again.',
    inputSchema: closed({ key: textOf('The key'), value: { description: 'Any JSON value' } }),
    transport: 'native',
    safetyTier: 'write',
    egress: 'none',
    replayPolicy: 'idempotent',
    call: ({ key, value }, by) =>
      storage.perform(scopeOf(by), { op: 'set', namespace: NAMESPACE, key: key as string, value }),
  };
}

/** The service is called and not the seam: the seam would record its own result as that of the tool call. */
function scopeOf({ tenant, workspace = '' }: ToolCaller): StorageScope {
  return { tenant, workspace };
}
