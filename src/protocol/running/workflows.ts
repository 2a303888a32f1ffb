import { type Static, Type } from 'typebox';
import { EnvelopeContract } from '../ai/envelopes.ts';
import { PromptRef } from '../ai/prompts.ts';
import { AnyObject, Closed, MapOf, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';

/** Which results of the incoming edges start a node. */
export const TRIGGER_RULES = ['all_success', 'any_success', 'all_complete', 'none_failed', 'any_failed'] as const;
/** One of TRIGGER_RULES. */
export type TriggerRule = (typeof TRIGGER_RULES)[number];

/** How sensitive values appear to readers. */
export const MASKING_MODES = ['mask', 'omit', 'hash', 'passthrough'] as const;
/** One of MASKING_MODES. */
export type MaskingMode = (typeof MASKING_MODES)[number];

const YEAR_MS = 31_536_000_000;
const Optional = Type.Optional;
const Point = Type.Object({ x: Type.Number(), y: Type.Number() });
/** Descriptions are part of lists, of which an answer has many. */
const Description = Type.String({ maxLength: 10_000 });
const Tags = Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { maxItems: 100 });

/** The agent that a node is bound to. */
export const AgentRef = Closed({
  agentId: Type.String({ minLength: 3, maxLength: 256 }),
  name: Optional(Type.String({ maxLength: 256 })),
  modelClass: Optional(
    OneOf([
      'reasoning',
      'tool-using',
      'chat',
      'code',
      'vision',
      'multimodal',
      'embedding',
      'classification',
      'retrieval',
    ]),
  ),
  memoryRef: Optional(Type.String({ minLength: 1, maxLength: 256 })),
  version: Optional(Type.String({ maxLength: 64 })),
  channel: Optional(Type.String({ minLength: 1, maxLength: 64 })),
  sourceManifestId: Optional(Type.String({ maxLength: 256 })),
});
/** A valid agent binding; only `agentId` is required. */
export type AgentRef = Static<typeof AgentRef>;

/** Where the value of an input port comes from. */
export const PortValue = Type.Union([
  Closed({ type: Type.Literal('static'), value: Type.Unknown() }),
  Closed({ type: Type.Literal('expression'), expression: NonEmpty }),
  Closed({
    type: Type.Literal('connection'),
    nodeId: NonEmpty,
    outputKey: NonEmpty,
    optional: Optional(Type.Boolean()),
  }),
  Closed({ type: Type.Literal('variable'), variableName: NonEmpty, optional: Optional(Type.Boolean()) }),
]);
/** A valid source of a value, discriminated by `type`. */
export type PortValue = Static<typeof PortValue>;

/** Retry and timeout of a node; `maxRetries` defaults to that of the workflow. */
export const NodeSettings = Type.Object({
  retry: Optional(
    Type.Object({
      maxRetries: Optional(Type.Integer({ minimum: 0, maximum: 100 })),
      delayMs: Optional(Type.Integer({ minimum: 0, maximum: 3_600_000 })),
    }),
  ),
  timeoutMs: Optional(Type.Integer({ minimum: 1, description: 'Maximum duration of an attempt' })),
});

/** A node of a workflow. */
export const WorkflowNode = Closed({
  id: NonEmpty,
  typeId: Type.String({ minLength: 1, pattern: '^[a-z][a-zA-Z0-9._-]*$' }),
  name: NonEmpty,
  position: Point,
  config: AnyObject,
  inputs: MapOf(PortValue),
  credentialsRef: Optional(Type.String()),
  settings: Optional(NodeSettings),
  outputRole: Optional(OneOf(['primary', 'secondary'])),
  disabled: Optional(Type.Boolean()),
  notes: Optional(Type.String()),
  groupId: Optional(Type.String()),
  agent: Optional(AgentRef),
  envelopeContract: Optional(EnvelopeContract),
  artifactType: Optional(Type.String()),
  cardType: Optional(Type.String()),
  outputSensitivity: Optional(MapOf(Type.Boolean())),
  compensation: Optional(AnyObject),
  irreversibleEffect: Optional(Type.Boolean()),
});
/** A well-formed node; its node type checks `config`. */
export type WorkflowNode = Static<typeof WorkflowNode>;

/** Kinds of edge condition. */
export const CONDITION_TYPES = ['expression', 'equals', 'notEquals', 'contains', 'regex', 'truthy', 'falsy'] as const;

/** A condition on the outputs of an edge's source; without one the edge is always taken. */
export const EdgeCondition = Closed({
  type: OneOf(CONDITION_TYPES),
  left: Optional(Type.String()),
  right: Optional(Type.Unknown()),
  expression: Optional(Type.String()),
});
/** A well-formed condition; which operands are used depends on `type`. */
export type EdgeCondition = Static<typeof EdgeCondition>;

/** An edge between two nodes. */
export const WorkflowEdge = Closed({
  id: NonEmpty,
  sourceNodeId: NonEmpty,
  targetNodeId: NonEmpty,
  sourceOutput: Optional(Type.String()),
  targetInput: Optional(Type.String()),
  condition: Optional(EdgeCondition),
  label: Optional(Type.String()),
  triggerRule: Optional(OneOf(TRIGGER_RULES)),
});
/** A well-formed edge; that both of its nodes exist is checked when the workflow is registered. */
export type WorkflowEdge = Static<typeof WorkflowEdge>;

/** What starts runs of a workflow. */
export const WorkflowTrigger = Closed({
  id: NonEmpty,
  type: OneOf([
    'manual',
    'schedule',
    'webhook',
    'event',
    'artifact',
    'canvas',
    'envelope',
    'command',
    'chat-message',
    'channel-write',
  ]),
  name: Optional(Type.String()),
  description: Optional(Description),
  config: Optional(AnyObject),
  enabled: Optional(Type.Boolean()),
  nodeId: Optional(Type.String()),
  eventType: Optional(Type.String()),
});

/** Variables of a workflow, and inputs of a run. Each node gets all of them; one of them may be an object with many more. */
export const VARIABLES_MAX = 1_000;

/** A variable of a workflow; callers set it through the inputs of a run. */
export const WorkflowVariable = Closed({
  name: NonEmpty,
  type: OneOf(['string', 'number', 'boolean', 'object', 'array']),
  description: Optional(Description),
  required: Optional(Type.Boolean()),
  defaultValue: Optional(Type.Unknown()),
  sensitive: Optional(Type.Boolean()),
  format: Optional(Type.String()),
});
/** A valid declaration; the value of a sensitive variable is masked for readers. */
export type WorkflowVariable = Static<typeof WorkflowVariable>;

const AccessList = Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { maxItems: 256, uniqueItems: true });

/** A channel: shared state of a run that nodes write to through a reducer. */
export const ChannelDeclaration = Closed({
  reducer: Type.String({
    pattern: '^(replace|append|merge|counter|votes|feedback|message|vendor\\.[a-z][a-z0-9_-]*\\.[a-z][a-z0-9_-]*)$',
  }),
  schema: Optional(AnyObject),
  default: Optional(Type.Unknown()),
  maxSize: Optional(Type.Integer({ minimum: 1 })),
  ttlMs: Optional(Type.Integer({ minimum: 1, maximum: YEAR_MS })),
  options: Optional(AnyObject),
  access: Optional(
    Type.Union([
      Type.Literal('public'),
      Type.Literal('private'),
      Closed({ readers: Optional(AccessList), writers: Optional(AccessList) }),
    ]),
  ),
  schemaVersion: Optional(Type.Integer({ minimum: 1 })),
  compatibleWith: Optional(Type.Array(Type.Integer({ minimum: 1 }), { uniqueItems: true })),
  sensitive: Optional(Type.Boolean()),
});
/** A valid declaration; the reducer combines each written value with the current one. */
export type ChannelDeclaration = Static<typeof ChannelDeclaration>;

/** The metadata that decides how sensitive values appear to readers. */
export const ComplianceMetadata = Type.Object({
  complianceClass: Optional(OneOf(['public', 'pii', 'phi', 'pci', 'regulated'])),
  complianceConfig: Optional(Type.Object({ maskingMode: Optional(OneOf(MASKING_MODES)) })),
});

/** Descriptive and compliance data of a workflow. */
export const WorkflowMetadata = Type.Object({
  createdBy: Optional(Type.String()),
  createdAt: Optional(Timestamp),
  updatedBy: Optional(Type.String()),
  updatedAt: Optional(Timestamp),
  tags: Optional(Tags),
  category: Optional(Type.String()),
  author: Optional(Type.String()),
  customProperties: Optional(AnyObject),
  ...ComplianceMetadata.properties,
  requiresAgentId: Optional(
    Type.String({
      minLength: 3,
      maxLength: 256,
      description: 'An agent whose task schema the inputs of each run must fit, checked before the first node',
    }),
  ),
  mcp: Optional(
    Closed({
      exposeAsTool: Type.Boolean({ description: 'Expose the workflow to MCP clients as a tool named by its id' }),
      title: Optional(Type.String({ minLength: 1, maxLength: 256 })),
      description: Optional(Type.String({ maxLength: 4_096, description: 'Description of the tool, shown to models' })),
      inputs: Optional(
        Type.Array(NonEmpty, {
          maxItems: 100,
          description: 'Variables that callers may set; defaults to all',
        }),
      ),
    }),
  ),
});

/** Limits and defaults of a workflow's runs. */
export const WorkflowSettings = Type.Object({
  timeout: Optional(Type.Integer({ minimum: 0, description: 'Maximum duration of a run in ms; 0 means no limit' })),
  maxRetries: Optional(Type.Integer({ minimum: 0, maximum: 100 })),
  logLevel: Optional(OneOf(['debug', 'info', 'warn', 'error'])),
  maxLoopbackIterations: Optional(Type.Integer({ minimum: 1 })),
});

/** A workflow as registered by its author. */
export const WorkflowDefinition = Closed(
  {
    id: Type.String({ minLength: 1, maxLength: 128, pattern: '^[a-z][a-z0-9_-]*$' }),
    name: Type.String({ minLength: 1, maxLength: 256 }),
    version: Type.String({ minLength: 1, maxLength: 256 }),
    nodes: Type.Array(WorkflowNode, { minItems: 1, maxItems: 10_000 }),
    edges: Type.Array(WorkflowEdge, { maxItems: 50_000 }),
    triggers: Type.Array(WorkflowTrigger),
    variables: Type.Array(WorkflowVariable),
    metadata: WorkflowMetadata,
    settings: WorkflowSettings,
    description: Optional(Description),
    type: Optional(Type.String()),
    isActive: Optional(Type.Boolean()),
    status: Optional(OneOf(['active', 'inactive', 'draft', 'archived'])),
    tenantId: Optional(Type.String()),
    scopeId: Optional(Type.String()),
    slug: Optional(Type.String({ pattern: '^[a-z0-9][a-z0-9_-]*$' })),
    groups: Optional(
      Type.Array(
        Closed({
          id: NonEmpty,
          name: NonEmpty,
          color: Optional(Type.String()),
          collapsed: Optional(Type.Boolean()),
          nodeIds: Type.Array(Type.String()),
          position: Point,
          size: Type.Object({ width: Type.Number(), height: Type.Number() }),
        }),
      ),
    ),
    channels: Optional(MapOf(ChannelDeclaration)),
    configurableSchema: Optional(AnyObject),
    defaults: Optional(
      Closed({
        promptRefs: Optional(
          Closed({
            system: Optional(PromptRef),
            user: Optional(PromptRef),
            'few-shot': Optional(PromptRef),
            'schema-hint': Optional(PromptRef),
          }),
        ),
      }),
    ),
    acceptsInheritedArtifacts: Optional(Type.Array(AnyObject)),
    createdAt: Optional(Timestamp),
    updatedAt: Optional(Timestamp),
  },
  { $id: 'WorkflowDefinition' },
);
/** A well-formed definition; registration also checks its graph, expressions and node types. */
export type WorkflowDefinition = Static<typeof WorkflowDefinition>;

const { name, position, config, inputs, ...nodeMembers } = WorkflowNode.properties;
const { id: edgeId, ...edgeMembers } = WorkflowEdge.properties;
const { nodes, edges, triggers, variables, metadata, settings, ...members } = WorkflowDefinition.properties;

/** A workflow as its author may write it: what the host can fill in may be left out. */
export const AuthoredWorkflow = Closed(
  {
    ...members,
    $schema: Optional(Type.String({ description: 'For editors; it is not stored' })),
    name: Optional(members.name),
    nodes: Type.Array(
      Closed({
        ...nodeMembers,
        name: Optional(name),
        position: Optional(position),
        config: Optional(config),
        inputs: Optional(inputs),
      }),
      { minItems: 1, maxItems: 10_000 },
    ),
    edges: Optional(Type.Array(Closed({ ...edgeMembers, id: Optional(edgeId) }), { maxItems: 50_000 })),
    triggers: Optional(triggers),
    variables: Optional(variables),
    metadata: Optional(metadata),
    settings: Optional(settings),
  },
  { $id: 'AuthoredWorkflow' },
);
/** A well-formed workflow before it is completed; every complete definition is one, too. */
export type AuthoredWorkflow = Static<typeof AuthoredWorkflow>;

/** Something in a definition that is allowed and yet probably not meant. */
export const WorkflowWarning = Type.Object({
  path: Type.String({ description: 'Location in the definition, such as `nodes[2].config.url`' }),
  message: Type.String(),
  nodeId: Optional(Type.String()),
});
/** A warning; it never keeps a definition from being registered. */
export type WorkflowWarning = Static<typeof WorkflowWarning>;

/** A workflow as listed. */
export const WorkflowSummary = Type.Object(
  {
    id: NonEmpty,
    name: NonEmpty,
    description: Optional(Type.String()),
    version: Type.String({ description: 'Version given by the author' }),
    registeredVersion: Type.Integer({
      minimum: 1,
      description: 'Incremented with each change; a run keeps the one it started with',
    }),
    nodes: Type.Integer(),
    shared: Type.Boolean({ description: 'Provided by the host for all tenants' }),
    updatedAt: Timestamp,
    warnings: Optional(
      Type.Array(WorkflowWarning, {
        description: 'Warnings about the definition; only in the answer to its registration',
      }),
    ),
  },
  { $id: 'WorkflowSummary' },
);
/** A row of the list of workflows; `nodes` is their number. */
export type WorkflowSummary = Static<typeof WorkflowSummary>;

/** A version of a workflow as listed. */
export const WorkflowVersion = Type.Object(
  {
    registeredVersion: Type.Integer({ minimum: 1 }),
    version: Type.String({ description: 'Version given by the author' }),
    name: NonEmpty,
    nodes: Type.Integer(),
    current: Type.Boolean({ description: 'Whether new runs use it' }),
    createdAt: Timestamp,
  },
  { $id: 'WorkflowVersion' },
);
/** A row of the list of versions; `nodes` is their number. */
export type WorkflowVersion = Static<typeof WorkflowVersion>;

/** A node type of the host, for editors that build workflows. */
export const NodeTypeSummary = Type.Object(
  {
    typeId: NonEmpty,
    description: Optional(Type.String()),
    role: OneOf(['pure', 'side-effect']),
    gate: Type.Boolean({ description: 'It asks for approval, so a cycle may pass through it' }),
    config: MapOf(Type.Unknown(), { description: 'JSON Schema of the config' }),
    inputs: Type.Array(Type.Object({ name: Type.String(), required: Type.Boolean() }), {
      description: 'The input ports that it is known to read',
    }),
    inputsOpen: Type.Boolean({ description: 'Whether it may read others, too' }),
    outputs: Optional(Type.Array(Type.String(), { description: 'Absent if the node itself decides' })),
  },
  { $id: 'NodeTypeSummary' },
);
/** A row of the catalogue of node types. */
export type NodeTypeSummary = Static<typeof NodeTypeSummary>;
