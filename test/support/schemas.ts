import { AgentInventory } from '../../src/protocol/ai/agents.ts';
import { MemoryEntry } from '../../src/protocol/ai/memory.ts';
import { PackLockfile, WorkflowChainPackManifest } from '../../src/protocol/ai/packs.ts';
import { PromptTemplate } from '../../src/protocol/ai/prompts.ts';
import { ToolDescriptor } from '../../src/protocol/ai/tools.ts';
import { ErrorEnvelope } from '../../src/protocol/errors.ts';
import { Goal } from '../../src/protocol/learning/goals.ts';
import { Proposal } from '../../src/protocol/learning/proposals.ts';
import { Annotation } from '../../src/protocol/people/annotations.ts';
import { EVENTS, RunEventDoc } from '../../src/protocol/running/events.ts';
import { DebugBundle, RunAncestry, RunDiff } from '../../src/protocol/running/inspection.ts';
import { RunSnapshot } from '../../src/protocol/running/runs.ts';
import { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import { AuditVerifyResult } from '../../src/protocol/trust/audit.ts';
import { type Check, checkBy, newAjv, once } from './recorder/compile.ts';
import { type Published, publishedSchemas } from './recorder/published.ts';

export interface Schemas {
  /** Whose schemas these are. */
  readonly from: 'the protocol' | 'the project';
  readonly discovery: Check;
  readonly snapshot: Check;
  readonly event: Check;
  readonly envelope: Check;
  readonly workflow: Check;
  readonly diff: Check;
  readonly ancestry: Check;
  readonly bundle: Check;
  readonly auditVerify: Check;
  readonly annotation: Check;
  readonly goal: Check;
  readonly promptTemplate: Check;
  readonly proposal: Check;
  readonly chainPack: Check;
  readonly packLockfile: Check;
  readonly memoryEntry: Check;
  readonly agentInventory: Check;
  readonly toolDescriptor: Check;
  /** Undefined for types that the catalogue does not know: readers must let those pass. */
  payload(type: string): Check | undefined;
}

let loaded: Schemas | undefined;

/** The protocol's published schemas where they lie beside the repository, else the project's own. */
export function loadSchemas(): Schemas {
  const published = publishedSchemas();
  loaded ??= published ? bySchemasOf(published) : ownSchemas();
  return loaded;
}

function bySchemasOf({ check, payload }: Published): Schemas {
  return {
    from: 'the protocol',
    discovery: check('capabilities'),
    snapshot: check('run-snapshot'),
    event: check('run-event'),
    envelope: check('error-envelope'),
    workflow: check('workflow-definition'),
    diff: check('run-diff-response'),
    ancestry: check('run-ancestry-response'),
    bundle: check('debug-bundle'),
    auditVerify: check('audit-verify-result'),
    annotation: check('annotation'),
    goal: check('goal'),
    promptTemplate: check('prompt-template'),
    proposal: check('proposal'),
    chainPack: check('workflow-chain-pack-manifest'),
    packLockfile: check('pack-lockfile'),
    memoryEntry: check('memory-entry'),
    agentInventory: check('agent-inventory-response'),
    toolDescriptor: check('tool-descriptor'),
    payload,
  };
}

function ownSchemas(): Schemas {
  const rows = EVENTS as Record<string, { payload: object }>;
  return {
    from: 'the project',
    discovery: checkOf(DISCOVERY),
    snapshot: checkOf(RunSnapshot),
    event: checkOf(RunEventDoc),
    envelope: checkOf(ErrorEnvelope),
    workflow: checkOf(WorkflowDefinition),
    diff: checkOf(RunDiff),
    ancestry: checkOf(RunAncestry),
    bundle: checkOf(DebugBundle),
    auditVerify: checkOf(AuditVerifyResult),
    annotation: checkOf(Annotation),
    goal: checkOf(Goal),
    promptTemplate: checkOf(PromptTemplate),
    proposal: checkOf(Proposal),
    chainPack: checkOf(WorkflowChainPackManifest),
    packLockfile: checkOf(PackLockfile),
    memoryEntry: checkOf(MemoryEntry),
    agentInventory: checkOf(AgentInventory),
    toolDescriptor: checkOf(ToolDescriptor),
    payload: once((type) => rows[type] && checkOf(rows[type].payload)),
  };
}

/** The check by a schema of the project. It is compiled when it is first used: that takes longer than most tests that do. */
function checkOf(schema: object): Check {
  let check: Check | undefined;
  return (value) => {
    check ??= checkBy(newAjv().compile(withoutId(schema)));
    return check(value);
  };
}

function withoutId(schema: object): object {
  const { $id: _id, ...rest } = JSON.parse(JSON.stringify(schema)) as Record<string, unknown>;
  return rest;
}

/** The project builds its discovery document from its capabilities and has no schema of it: core.md 1.3 to 1.5. */
const DISCOVERY = {
  type: 'object',
  required: ['protocolVersion', 'supportedEnvelopes', 'schemaVersions', 'limits'],
  properties: {
    protocolVersion: { type: 'string', pattern: '^(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)$' },
    protocolVersions: { type: 'array', items: { type: 'string' } },
    supportedEnvelopes: { type: 'array', items: { type: 'string', minLength: 1 } },
    schemaVersions: { type: 'object', additionalProperties: { type: 'integer', minimum: 0 } },
    limits: {
      type: 'object',
      required: ['clarificationRounds', 'schemaRounds', 'envelopesPerTurn'],
      additionalProperties: { type: 'number', minimum: 0 },
    },
    engineVersion: { type: 'integer', minimum: 0 },
    eventLogSchemaVersion: { type: 'integer' },
    supportedTransports: { type: 'array', items: { enum: ['rest', 'mcp', 'a2a', 'grpc'] } },
    fixtures: { type: 'array', uniqueItems: true, items: { type: 'string', minLength: 1 } },
  },
};
