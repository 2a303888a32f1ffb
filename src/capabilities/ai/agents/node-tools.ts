import { type TSchema, Type } from 'typebox';
import { OutputBudget } from '../../../engine/limits/output-budget.ts';
import { isObject, type JsonObject, own } from '../../../protocol/format/json.ts';
import type { Effects, SeamName, StepRequest } from '../../../runtime/effects/seams.ts';
import { SEAMS } from '../../../runtime/effects/seams.ts';
import type { NodeAsTool, NodeContext, NodeType, Outcome } from '../../../runtime/node-type.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import {
  type CallableTool,
  nodeArguments,
  ownTraits,
  type ToolCaller,
  ToolFailure,
  type ToolSource,
  type ToolTraits,
} from '../../../runtime/tools.ts';

const SCOPE = 'openwop';

/** A node type that agents may call. */
interface NodeTool {
  readonly description: string;
  readonly traits: ToolTraits;
  /** JSON Schemas that replace those of config members. */
  readonly config?: JsonObject;
  /** JSON Schema of the inputs; any object by default. */
  readonly inputs?: TSchema;
}

const COMPUTES = ownTraits('pure');
const SENDS: ToolTraits = { safetyTier: 'write', egress: 'safe-fetch', replayPolicy: 'non-deterministic' };
const computes = (description: string): NodeTool => ({ description, traits: COMPUTES });

/**
 * The node types that are tools: those that answer within one call and need no run around them. Others wait, ask people,
 * start runs or change the variables of their run.
 */
const NODE_TOOLS: Readonly<Record<string, NodeTool>> = {
  'core.openwop.data.array-filter': computes('Keeps the items of the input `array` with a given value at a path.'),
  'core.openwop.data.array-group-by': computes('Groups the items of the input `array` and aggregates each group.'),
  'core.openwop.data.array-map': computes('Renders a template for each item of the input `array`.'),
  'core.openwop.data.csv-parse': computes('Parses the input `text` as comma-separated values.'),
  'core.openwop.data.csv-stringify': computes('Formats the input `rows` as comma-separated values.'),
  'core.openwop.data.json-parse': computes('Parses the input `text` as JSON.'),
  'core.openwop.data.json-schema-validate': computes('Validates the input `value` against the input `schema`.'),
  'core.openwop.data.json-stringify': computes('Formats the input `value` as JSON.'),
  'core.openwop.data.object-merge': computes('Merges the inputs `base` and `override`; `override` wins.'),
  'core.openwop.data.string-format': computes('Renders the input `template` with values of the input `context`.'),
  'core.openwop.http.fetch': {
    description: 'Sends one HTTP request. The input `variables` fills in the URL, `body` is what is sent.',
    traits: SENDS,
    // A model may not choose which credential of the operator is sent.
    config: { headers: { type: 'object', additionalProperties: { type: 'string' } } },
  },
  'core.openwop.integration.email-send': {
    description: 'Sends an e-mail to the input `to`, with the inputs `subject` and `text` or `html`.',
    traits: { ...SENDS, egress: 'host-owned' },
  },
};

/** The seams that a node may use when it is called as a tool. Its calls are part of the effect that the tool call is. */
const TOOL_SEAMS: ReadonlySet<SeamName> = new Set<SeamName>(['http', 'mail', 'step']);

/** Node types as tools: `openwop:<typeId>`, called with the config and the inputs of a node. */
export function nodeTools(runtime: Runtime): ToolSource {
  const toolOf = (typeId: string): CallableTool | undefined => {
    const type = runtime.catalog.get(typeId);
    const tool = own(NODE_TOOLS, typeId) ?? (type?.tool && ownTool(type.tool));
    return tool && type ? nodeTool(runtime, type, tool) : undefined;
  };
  return {
    scope: SCOPE,
    kind: 'node-pack',
    find: async (_user, name) => toolOf(name.slice(SCOPE.length + 1)),
    list: async () => {
      const added = runtime.catalog.types.filter(({ tool }) => tool).map(({ typeId }) => typeId);
      return [...Object.keys(NODE_TOOLS), ...added].flatMap((typeId) => toolOf(typeId) ?? []);
    },
  };
}

/** What a node of an operator's own code may do is what its author says. */
function ownTool({ description, safety, inputs }: NodeAsTool): NodeTool {
  return { description, traits: ownTraits(safety), inputs };
}

function nodeTool(runtime: Runtime, type: NodeType, tool: NodeTool): CallableTool {
  const { description, traits } = tool;
  return {
    name: `${SCOPE}:${type.typeId}`,
    title: type.typeId,
    description,
    inputSchema: argumentsOf(type, tool),
    transport: traits.safetyTier === 'pure' ? 'native' : 'http',
    ...traits,
    call: async (args, by) => {
      const context = contextOf(runtime, type, args, by);
      const [problem] = runtime.catalog.checkConfig(context.node);
      if (problem) throw new ToolFailure(`config${problem.path}: ${problem.message}`);
      return outputsOf(type, await type.run(context));
    },
  };
}

function argumentsOf(
  { config = {} }: NodeType,
  { config: narrowed = {}, inputs = Type.Object({}) }: NodeTool,
): JsonObject {
  const { properties = {} } = config as { properties?: JsonObject };
  return nodeArguments({ ...config, properties: { ...properties, ...narrowed } }, inputs);
}

/** The context of a node without a run of its own: no variables, no answers, no children. */
function contextOf(runtime: Runtime, { typeId }: NodeType, args: JsonObject, by: ToolCaller): NodeContext {
  const { runId, nodeId, tenant, workspace, signal } = by;
  const config = isObject(args.config) ? args.config : {};
  const inputs = isObject(args.inputs) ? args.inputs : {};
  const node = { id: nodeId, typeId, name: typeId, position: { x: 0, y: 0 }, config, inputs: {} };
  const unavailable = (): never => {
    throw new ToolFailure(`${typeId} needs a run of its own and cannot be called as a tool.`);
  };
  return {
    runId,
    owner: { tenant, ...(workspace === undefined ? {} : { workspace }) },
    workflow: { id: typeId, name: typeId, nodes: [node], edges: [], metadata: {} },
    node,
    config,
    inputs,
    declared: inputs,
    variables: {},
    masked: () => ({ inputs, variables: {} }),
    configurable: {},
    attempt: 0,
    isLastAttempt: true,
    visit: 0,
    startedAt: runtime.clock.now(),
    now: runtime.clock.now,
    signal,
    answer: undefined,
    answerCount: 0,
    decisions: [],
    answers: [],
    routes: () => false,
    child: undefined,
    children: [],
    childResult: async () => unavailable(),
    effects: effectsOf(runtime, by, unavailable),
    schemas: runtime.schemas.of(by.tenant),
    budget: new OutputBudget('The output', runtime.outputLimits.output),
    holder: { tenant, workspace, commit: async () => unavailable(), trace: () => undefined },
    sleep: async () => unavailable(),
    emit: () => {},
    emitShown: () => {},
    emitStep: () => {},
  };
}

function effectsOf(runtime: Runtime, by: ToolCaller, unavailable: () => never): Effects {
  const through = (seam: SeamName) => {
    const fire = runtime.seams[seam] as (request: unknown, firing: ToolCaller) => Promise<unknown>;
    return async (request: unknown) => (TOOL_SEAMS.has(seam) ? fire(request, within(by, request)) : unavailable());
  };
  const names = Object.keys(SEAMS) as SeamName[];
  return Object.fromEntries(names.map((seam) => [seam, through(seam)])) as Effects;
}

/** Each step of a node's own code has a key of its own within that of the tool call. */
function within(by: ToolCaller, request: unknown): ToolCaller {
  const { name } = request as Partial<StepRequest>;
  return name === undefined ? by : { ...by, effectId: `${by.effectId}:${name}` };
}

function outputsOf({ typeId }: NodeType, outcome: Outcome): JsonObject {
  if ('done' in outcome) return outcome.done.outputs ?? {};
  throw new ToolFailure('failed' in outcome ? outcome.failed.message : `${typeId} did not answer at once.`);
}
