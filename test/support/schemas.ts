import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
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

/** What is wrong with a value, in words; empty when it fits. */
export type Check = (value: unknown) => readonly string[];

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

const PUBLISHED = fileURLToPath(new URL('../../../shared/openwop/schemas/', import.meta.url));
const BASE = 'https://openwop.dev/spec/v1/';

/** The protocol's published schemas where they lie beside the repository, else the project's own. */
export function loadSchemas(): Schemas {
  return existsSync(PUBLISHED) ? publishedSchemas() : ownSchemas();
}

function newAjv(): Ajv2020 {
  return new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
}

function publishedSchemas(): Schemas {
  const ajv = newAjv();
  const documents = new Map<string, Record<string, unknown>>();
  for (const name of readdirSync(PUBLISHED).filter((file) => file.endsWith('.schema.json'))) {
    const document = JSON.parse(readFileSync(PUBLISHED + name, 'utf8')) as Record<string, unknown>;
    documents.set(name, document);
    ajv.addSchema(document, `${BASE}${name}` === document.$id ? undefined : `${BASE}${name}`);
  }
  const checkOf = (reference: string): Check => check(ajv.compile({ $ref: `${BASE}${reference}` }));
  const payloads = documents.get('run-event-payloads.schema.json') as {
    $defs: { _typeIndex: { properties: Record<string, { $ref: string }> } };
  };
  const index = payloads.$defs._typeIndex.properties;
  return {
    from: 'the protocol',
    discovery: checkOf('capabilities.schema.json'),
    snapshot: checkOf('run-snapshot.schema.json'),
    event: checkOf('run-event.schema.json'),
    envelope: checkOf('error-envelope.schema.json'),
    workflow: checkOf('workflow-definition.schema.json'),
    diff: checkOf('run-diff-response.schema.json'),
    ancestry: checkOf('run-ancestry-response.schema.json'),
    bundle: checkOf('debug-bundle.schema.json'),
    auditVerify: checkOf('audit-verify-result.schema.json'),
    annotation: checkOf('annotation.schema.json'),
    goal: checkOf('goal.schema.json'),
    promptTemplate: checkOf('prompt-template.schema.json'),
    proposal: checkOf('proposal.schema.json'),
    chainPack: checkOf('workflow-chain-pack-manifest.schema.json'),
    packLockfile: checkOf('pack-lockfile.schema.json'),
    memoryEntry: checkOf('memory-entry.schema.json'),
    agentInventory: checkOf('agent-inventory-response.schema.json'),
    toolDescriptor: checkOf('tool-descriptor.schema.json'),
    payload: (type) => index[type] && checkOf(`run-event-payloads.schema.json${index[type].$ref}`),
  };
}

function ownSchemas(): Schemas {
  const checkOf = (schema: object): Check => {
    const { $id: _id, ...rest } = JSON.parse(JSON.stringify(schema)) as Record<string, unknown>;
    return check(newAjv().compile(rest));
  };
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
    payload: (type) => rows[type] && checkOf(rows[type].payload),
  };
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

function check(validate: ValidateFunction): Check {
  return (value) => {
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath || '/'} ${message} ${JSON.stringify(params)}`,
    );
  };
}
