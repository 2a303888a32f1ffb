import { defined, type JsonObject } from '../../protocol/format/json.ts';
import type { WorkflowDefinition, WorkflowVariable } from '../../protocol/running/workflows.ts';

/** The JSON Schema of a workflow's variables, for callers that use the workflow like a function (MCP, agents). */
export function argumentsSchema({ variables, metadata }: WorkflowDefinition): { readonly type: 'object' } & JsonObject {
  const named = metadata.mcp?.inputs;
  const open = variables.filter(({ name }) => named === undefined || named.includes(name));
  const required = open.filter((variable) => variable.required && variable.defaultValue === undefined);
  return {
    type: 'object',
    properties: Object.fromEntries(open.map((variable) => [variable.name, schemaOf(variable)])),
    ...(required.length > 0 ? { required: required.map(({ name }) => name) } : {}),
    additionalProperties: false,
  };
}

/** The default of a sensitive variable is omitted, because callers must not see it. */
function schemaOf({ type, description, defaultValue, sensitive }: WorkflowVariable): JsonObject {
  return defined({ type, description, default: sensitive ? undefined : defaultValue });
}
