import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { fixturesFor } from '../src/capabilities/conformance/fixtures/index.ts';
import { capabilities, loadConformance } from '../src/capabilities/index.ts';
import { checkRegistration } from '../src/capabilities/running/workflows/rules.ts';
import { readConfig } from '../src/config.ts';
import { checkDefinition } from '../src/engine/definition/check.ts';
import { completeWorkflow } from '../src/engine/definition/complete.ts';
import { validator } from '../src/http/validation.ts';
import { AuthoredWorkflow, type WorkflowDefinition } from '../src/protocol/running/workflows.ts';
import { catalogOf } from '../src/runtime/catalog.ts';
import type { NodeType } from '../src/runtime/node-type.ts';
import { localSchemaValidator } from '../src/runtime/validation/schema-validator.ts';
import { node } from './support/definitions.ts';
import { type Shape, sampleOf } from './support/samples.ts';

/**
 * Goal: no key of a config is ignored. Method: every place of every node type's schema is given a key that does not
 * exist; the keys that the protocol documents, the examples and the fixtures are taken.
 */

const STRAY = 'noSuchKey';
const isShaped = validator(AuthoredWorkflow, 'body');
const config = readConfig({ conformance: '1' }, {});
const conformanceNodes = (await loadConformance()).flatMap(({ nodes }) => nodes(config));
const mounted = capabilities.flatMap(({ nodes }) => nodes(config));
const production = catalogOf(mounted);
const conformance = catalogOf([...mounted, ...conformanceNodes]);
const types = new Map([...mounted, ...conformanceNodes].map((type) => [type.typeId, type]));

interface Strayed {
  readonly value: unknown;
  readonly path: string;
}

/** Values of the shape in each of which one object has the stray key. */
function* strayed(shape: Shape): Generator<Strayed> {
  for (const branch of shape.anyOf ?? []) yield* strayed(branch);
  if (shape.items) for (const { value, path } of strayed(shape.items)) yield { value: [value], path: `.0${path}` };
  if (shape.type !== 'object') return;
  const { properties = {}, additionalProperties = false } = shape;
  const sample = sampleOf(shape) as object;
  if (additionalProperties === false) yield { value: { ...sample, [STRAY]: 1 }, path: `.${STRAY}` };
  for (const [name, member] of Object.entries(properties)) yield* inside(name, member, sample);
  if (typeof additionalProperties === 'object') yield* inside('any', additionalProperties, sample);
}

function* inside(name: string, member: Shape, sample: object): Generator<Strayed> {
  for (const { value, path } of strayed(member)) yield { value: { ...sample, [name]: value }, path: `.${name}${path}` };
}

const problemsOf = (type: NodeType, given: unknown): { path: string; message: string }[] => [
  ...catalogOf([type]).checkConfig(node('a', type.typeId, { config: given as Record<string, unknown> })),
];

const places = [...types.values()].flatMap((type) =>
  [...strayed((type.config ?? { type: 'object' }) as Shape)].map(({ value, path }) => ({ type, value, path })),
);

describe('a key that does not exist', () => {
  it('is looked for in every type but the one that stands for nothing', () => {
    const open = [...types.keys()].filter((typeId) => !places.some(({ type }) => type.typeId === typeId));
    expect(open).toEqual(['core.noop']);
    expect(places.length).toBeGreaterThan(types.size);
  });

  it.each(places.map(({ type, ...rest }) => ({ typeId: type.typeId, ...rest })))(
    'is refused in $typeId at $path',
    ({ typeId, value, path }) => {
      const found = problemsOf(types.get(typeId)!, value).find((problem) => problem.path === path);
      expect(found?.message).toMatch(/^The key "noSuchKey" is not known here\./);
    },
  );
});

/** Config keys that the protocol gives to node types which this host has. */
const DOCUMENTED: Readonly<Record<string, readonly string[]>> = {
  'core.delay': ['delayMs', 'ms', 'durationMs'],
  'core.fail': ['code', 'message'],
  'core.setVariable': ['name', 'value'],
  'core.getVariable': ['name'],
  'core.channelWrite': ['channelName', 'reducer', 'value', 'ttlMs', 'maxSize'],
  'core.approvalGate': [
    ...['title', 'description', 'prompt', 'actions', 'requiredApprovals', 'rejectionPolicy', 'approversList'],
    ...['approverGroupRefs', 'approverRoleRefs', 'audience', 'profile', 'timeoutMs'],
  ],
  'core.openwop.governance.approvalGate': [
    ...['requiredRole', 'requiredScope', 'quorum', 'override', 'overrideBypassesQuorum', 'timeoutSec'],
    ...['resumeSchema', 'artifactHash'],
  ],
  'core.clarificationGate': ['questions'],
  'core.interrupt': ['kind', 'data', 'timeoutMs', 'resumeSchema'],
  'core.subWorkflow': [
    ...['workflowId', 'waitForCompletion', 'onChildFailure', 'inputMapping', 'outputMapping'],
    ...['propagateCancellation', 'outputAttestation'],
  ],
  'core.dispatch': [
    ...['askUserRouting', 'workerDispatchModel', 'fanOutPolicy', 'iterationCap', 'inputMapping', 'outputMapping'],
    ...['perWorkerInputMappings', 'perWorkerOutputMappings'],
  ],
  'core.orchestrator.supervisor': ['mockDispatchPlan', 'mockDecisions', 'mockConfidence', 'mockPendingDecision'],
  'core.ai.callPrompt': ['promptId', 'expectsStreaming', 'mcp', 'mcpServers', 'envelopeType', 'systemPrompt'],
  'core.ai.chatCompletion': ['provider', 'model', 'systemPrompt', 'temperature', 'maxTokens', 'stopSequences'],
  'core.ai.structuredOutput': ['provider', 'model', 'outputSchema', 'maxTokens', 'retryOnInvalidJson'],
  'core.ai.toolCalling': ['provider', 'model', 'tools', 'toolChoice'],
  'core.agents.run': ['maxSteps', 'strategy', 'systemPrompt'],
  'core.identity': ['memoryAction', 'byokSecretId', 'probeMemoryRef', 'emitDuplicateMessageId'],
  'core.conformance.mock-agent': ['agentId', 'mockReasoning', 'mockToolCalls', 'mockHandoff', 'mockDecision'],
  'core.flow.if': ['predicate'],
  'core.flow.switch': ['cases', 'default'],
  'core.flow.router': ['routes', 'mode', 'defaultLabel'],
  'core.flow.filter': ['predicate'],
  'core.flow.merge': ['mode', 'keyPath'],
  'core.flow.wait': ['mode', 'seconds', 'timestamp', 'signatureHint'],
  'core.flow.stop-and-error': ['code', 'message', 'details'],
  'core.openwop.http.fetch': ['url', 'method', 'headers', 'timeoutMs', 'idempotency'],
  'core.openwop.http.idempotency-key': ['mode'],
  'core.openwop.mcp.invoke-tool': ['serverId', 'toolName', 'timeoutMs'],
  'core.openwop.integration.email-send': ['from', 'provider', 'replyTo', 'fallbackOnFailure'],
  'core.storage.kv-get': ['namespace'],
  'core.storage.kv-set': ['namespace', 'ttlSeconds'],
  'core.storage.kv-cas': ['namespace'],
};

/** Keys of every node type that composes prompts. */
const PROMPTED = ['core.ai.callPrompt', 'core.ai.chatCompletion', 'core.agents.run', 'local.sample.demo.mock-ai'];
const PROMPT_REFS = ['systemPromptRef', 'userPromptRef', 'schemaHintPromptRef', 'fewShotPromptRefs'];

describe('a key that the protocol documents', () => {
  const documented = Object.entries(DOCUMENTED).flatMap(([typeId, keys]) => keys.map((key) => ({ typeId, key })));
  const prompts = PROMPTED.flatMap((typeId) =>
    [...PROMPT_REFS, 'additionalPromptRefs'].map((key) => ({ typeId, key })),
  );

  it.each([...documented, ...prompts])('is taken: $typeId $key', ({ typeId, key }) => {
    const { config: schema = {} } = types.get(typeId)!;
    const shapes = (schema as Shape).anyOf ?? [schema as Shape];
    const shape = shapes.find(({ properties = {} }) => Object.hasOwn(properties, key));
    expect(shape, `${typeId} does not know ${key}`).toBeDefined();
    const given = { ...(sampleOf(shape!) as object), [key]: sampleOf(shape!.properties![key]!) };
    expect(problemsOf(types.get(typeId)!, given).filter(({ message }) => message.includes('not known'))).toEqual([]);
  });

  it('may be refused with what to do instead', () => {
    const fetching = node('a', 'core.openwop.http.fetch', { config: { url: 'https://a.example/', retry: {} } });
    expect(production.checkConfig(fetching)).toEqual([
      { path: '.retry', message: "Retries are set in the node's own settings.retry." },
    ]);
  });
});

const root = (path: string): URL => new URL(`../${path}`, import.meta.url);

/** The workflow definitions among the JSON files of a folder and its folders. */
function definitionsIn(folder: URL): { readonly file: string; readonly definition: WorkflowDefinition }[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.json'))
    .map((file) => ({ file, definition: JSON.parse(readFileSync(new URL(file, folder), 'utf8')) }))
    .filter(({ definition }) => Array.isArray(definition.nodes) && Array.isArray(definition.edges));
}

describe('definitions that there are', () => {
  const examples = definitionsIn(root('examples/'));
  const seeded = fixturesFor(config).map((definition) => ({ file: definition.id, definition }));
  const published = definitionsIn(root('../shared/openwop/fixtures/'));

  it('are there', () => {
    expect(examples.length).toBeGreaterThanOrEqual(8);
    expect(seeded.length).toBeGreaterThanOrEqual(60);
  });

  const checks = { catalog: production, schemas: localSchemaValidator() };

  // A host does not check them when it starts.
  it.each(examples)('have no problem: $file', async ({ definition }) => {
    expect(isShaped(definition)).toBeUndefined();
    expect(await checkRegistration(completeWorkflow(definition), checks)).toBeUndefined();
  });

  it.each(seeded)('have no problem under the conformance switch: $file', ({ definition }) => {
    expect(checkDefinition(definition, conformance)).toEqual([]);
  });

  it('have no unknown keys where the protocol publishes them', () => {
    const problems = published.flatMap(({ definition }) => checkDefinition(definition, conformance));
    expect(problems.filter(({ path }) => /\bconfig\b|^settings|^metadata/.test(path))).toEqual([]);
  });
});
