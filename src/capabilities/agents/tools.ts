import { argumentsSchema } from '../../engine/workflow-arguments.ts';
import type { JsonObject } from '../../protocol/json.ts';
import type { KvRequest } from '../../runtime/effects/kv.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { CallableTool, ToolSource } from '../../runtime/tools.ts';

const HTTP_TIMEOUT_MS = 15_000;
/** Pages are longer than models care to read. */
const HTTP_BYTES_MAX = 100_000;
/** Where agents keep what they set; nodes reach it under the same name. */
const NAMESPACE = 'agents';

/** The tools that come with the host: what nodes can do, for agents. */
export function ownTools({ plans, seams }: Runtime): readonly ToolSource[] {
  return [workflows(plans), fixed('capstan.http', [httpGet(seams)]), fixed('capstan.kv', [kvGet(seams), kvSet(seams)])];
}

/** `capstan.workflow:<id>` is the workflow of that id. */
function workflows(plans: Runtime['plans']): ToolSource {
  const scope = 'capstan.workflow';
  return {
    scope,
    find: async (user, name) => {
      const workflowId = name.slice(scope.length + 1);
      const pinned = await plans.current(user, workflowId);
      if (!pinned) return undefined;
      const { definition } = pinned.plan;
      const { description = definition.name } = definition;
      return { name, description, inputSchema: argumentsSchema(definition), transport: 'native', workflowId };
    },
  };
}

function fixed(scope: string, tools: readonly CallableTool[]): ToolSource {
  return { scope, find: async (_user, name) => tools.find((tool) => tool.name === name) };
}

const textOf = (description: string): JsonObject => ({ type: 'string', minLength: 1, description });

function closed(properties: JsonObject): JsonObject {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
}

function httpGet(seams: Runtime['seams']): CallableTool {
  return {
    name: 'capstan.http:get',
    description: 'Fetches what is at an address of the public network.',
    inputSchema: closed({ url: textOf('An http or https address') }),
    transport: 'http',
    async call({ url }, by) {
      const request = { method: 'GET', headers: {}, isKeyed: false, failOn: [] };
      const limits = { timeoutMs: HTTP_TIMEOUT_MS, maxBytes: HTTP_BYTES_MAX };
      const { status, body, networkError } = await seams.http({ ...request, ...limits, url: url as string }, by);
      return networkError === undefined ? { status, body } : { status, networkError };
    },
  };
}

function kvGet(seams: Runtime['seams']): CallableTool {
  return {
    name: 'capstan.kv:get',
    description: 'Reads the value that was set under a key.',
    inputSchema: closed({ key: textOf('The key') }),
    transport: 'native',
    call: ({ key }, by) => seams.kv({ op: 'get', namespace: NAMESPACE, key: key as string }, by),
  };
}

function kvSet(seams: Runtime['seams']): CallableTool {
  return {
    name: 'capstan.kv:set',
    description: 'Sets the value of a key, for good or until it is set again.',
    inputSchema: closed({ key: textOf('The key'), value: { description: 'Any JSON value' } }),
    transport: 'native',
    call: ({ key, value }, by) =>
      seams.kv({ op: 'set', namespace: NAMESPACE, key: key as string, value } as KvRequest, by),
  };
}
