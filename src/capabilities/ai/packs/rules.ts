import { Compile } from 'typebox/compile';
import {
  asWorkflow,
  type Expansion,
  expandChain,
  expandedSize,
  parametersUsed,
} from '../../../engine/definition/chain.ts';
import type { NodeCatalog, SchemaAt } from '../../../engine/definition/check.ts';
import {
  AgentPackManifest,
  agentsOf,
  chainsOf,
  type ExpandChainReply,
  type PackManifest,
  type PackProvenance,
  type PackSignature,
  type WorkflowChain,
  WorkflowChainPackManifest,
} from '../../../protocol/ai/packs.ts';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { isObject, type JsonObject, own, pointerOf } from '../../../protocol/format/json.ts';
import { once } from '../../../protocol/format/once.ts';
import type { WorkflowEdge, WorkflowNode } from '../../../protocol/running/workflows.ts';
import { schemaProblemsByPointer } from '../../../runtime/catalog.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { definitionProblems } from '../../../runtime/validation/definition-problems.ts';
import { problemsOf, type SchemaValidator } from '../../../runtime/validation/schema-validator.ts';
import { findSecret } from '../../../system/redaction.ts';
import { refuseProblems } from '../../running/workflows/door.ts';
import type { KnownVersion } from './records.ts';
import { includesMajor } from './version-ranges.ts';

/** The members that hold the contents of a pack of each kind. */
const CONTENTS: Record<string, readonly string[]> = {
  node: ['nodes', 'agents'],
  'workflow-chain': ['chains'],
  prompt: ['prompts'],
  'artifact-type': ['artifactTypes'],
  card: ['cards'],
  connection: ['provider'],
  'frontend-plugin': ['uiPlugins'],
  'form-content': ['templates'],
};
const PROBLEMS_MAX = 10;
const EXPANSION_MAX = 2_000_000;
const VERSIONS_MAX = 1_000;
const PROTOCOL_MAJOR = 1;

/** A problem of a manifest: a JSON pointer, and a message. */
export interface Misfit {
  readonly path: string;
  readonly message: string;
}

const chainShape = once(() => Compile(WorkflowChainPackManifest));
const agentShape = once(() => Compile(AgentPackManifest));

/** Checks `pack.json` by itself: kind, schema, and what a schema cannot express. */
export function checkManifest(manifest: unknown): Refusal | undefined {
  if (!isObject(manifest)) return invalid([{ path: '', message: 'must be an object' }]);
  return checkKind(manifest) ?? invalid(shapeMisfits(manifest)) ?? invalid(misfitsOf(manifest as PackManifest));
}

/** The refusal for problems of a manifest; undefined if there are none. */
export function invalid(misfits: readonly Misfit[]): Refusal | undefined {
  const [first] = misfits;
  if (!first) return undefined;
  const message = `pack.json${first.path && ` at ${first.path}`} ${first.message}.`;
  return refuse('invalid_manifest', message, { path: first.path, fields: misfits.slice(0, PROBLEMS_MAX) });
}

/** Checks the kind before the schema, so that packs of other kinds get a helpful answer. */
function checkKind(manifest: JsonObject): Refusal | undefined {
  const { kind = 'node' } = manifest;
  const meant = typeof kind === 'string' ? own(CONTENTS, kind) : undefined;
  if (!meant)
    return refuse('pack_kind_invalid', `Unknown kind of pack. Known are ${Object.keys(CONTENTS).join(', ')}.`, {
      path: '/kind',
    });
  const isDeclarative = kind !== 'node';
  const foreign = [...Object.values(CONTENTS).flat(), ...(isDeclarative ? ['runtime'] : [])].find(
    (name) => Object.hasOwn(manifest, name) && !meant.includes(name),
  );
  if (foreign) {
    const message = `A pack of the kind ${kind} must not have ${foreign}: a pack has contents of one kind.`;
    return refuse('pack_kind_invalid', message, { path: `/${foreign}` });
  }
  if (kind === 'workflow-chain') return undefined;
  const { nodes = [], agents } = manifest;
  if (kind === 'node' && agents !== undefined && Array.isArray(nodes) && nodes.length === 0) return undefined;
  const requiredCapability = `packs.${kind}`;
  const message = 'This host installs packs of workflow chains and packs of agents only.';
  return refuse('capability_required', message, { requiredCapability });
}

/** Refuses a pack that needs a capability which this host does not advertise. */
export function checkPeers(manifest: PackManifest, isAdvertised: (capability: string) => boolean): Refusal | undefined {
  const missing = peersOf(manifest).find(({ isOptional, capability }) => !isOptional && !isAdvertised(capability));
  if (!missing) return undefined;
  const { capability } = missing;
  return refuse(
    'pack_peer_dependency_missing',
    `The pack needs the capability ${capability}, which this host does not have.`,
    {
      capability,
      requiredCapability: capability,
    },
  );
}

/** The capabilities that a pack needs of its host. */
export function peersOf(manifest: PackManifest): readonly { capability: string; isOptional: boolean }[] {
  if (!('agents' in manifest)) return [];
  const { peerDependencies = {}, peerDependenciesMeta } = manifest;
  return Object.keys(peerDependencies).map((capability) => ({
    capability,
    isOptional: own(peerDependenciesMeta, capability)?.optional === true,
  }));
}

function shapeMisfits(manifest: JsonObject): Misfit[] {
  const shape = manifest.kind === 'workflow-chain' ? chainShape() : agentShape();
  return schemaProblemsByPointer(shape, manifest);
}

function misfitsOf(manifest: PackManifest): Misfit[] {
  const secret = findSecret(manifest);
  const chains = chainsOf(manifest);
  return [
    ...engineMisfits(manifest.engines.openwop),
    ...repeated(
      chains.map(({ chainId }) => chainId),
      (index) => `/chains/${index}/chainId`,
    ),
    ...repeated(
      agentsOf(manifest).map(({ agentId }) => agentId),
      (index) => `/agents/${index}/agentId`,
    ),
    ...chains.flatMap((chain, index) => chainMisfits(chain, `/chains/${index}`)),
    ...(secret === undefined ? [] : [{ path: pointerOf(secret), message: 'looks like a secret' }]),
  ];
}

/** A pack must support the protocol major of this host. */
function engineMisfits(range: string): Misfit[] {
  const isMeant = includesMajor(range, PROTOCOL_MAJOR);
  if (isMeant) return [];
  const message =
    isMeant === undefined
      ? 'is not a version range'
      : `does not include version ${PROTOCOL_MAJOR}, which this host speaks`;
  return [{ path: '/engines/openwop', message }];
}

/** The JSON Schemas of a pack's chains. */
export function chainSchemas(manifest: PackManifest): SchemaAt[] {
  return chainsOf(manifest).map(({ parameters }, index) => ({
    path: `/chains/${index}/parameters`,
    schema: parameters,
  }));
}

function chainMisfits({ dag }: WorkflowChain, path: string): Misfit[] {
  return [
    ...repeated(
      dag.nodes.map(({ id }) => id),
      (index) => `${path}/dag/nodes/${index}/id`,
    ),
    ...(dag.nodes.length > 1 && !dag.edges ? [{ path: `${path}/dag/edges`, message: 'is missing' }] : []),
  ];
}

function repeated(values: readonly string[], pathOf: (index: number) => string): Misfit[] {
  const first = new Map<string, number>();
  for (const [index, value] of values.entries()) if (!first.has(value)) first.set(value, index);
  return values.flatMap((value, index) =>
    first.get(value) === index ? [] : [{ path: pathOf(index), message: 'appears twice' }],
  );
}

/** The values for an expansion of a chain. */
interface ExpansionRequest {
  readonly parameters: JsonObject;
  readonly expansionId: string;
}

type Checks = Pick<Runtime, 'catalog' | 'schemas'>;

/** Expands a chain into nodes and edges that are valid in a workflow of this host. */
export async function expand(
  chain: WorkflowChain,
  { parameters, expansionId }: ExpansionRequest,
  { catalog, schemas }: Checks,
): Promise<(Expansion & Pick<ExpandChainReply, 'workflow'>) | Refusal> {
  const refusal =
    checkServed(chain) ??
    checkTypes(chain, catalog) ??
    checkSensitive(chain) ??
    (await checkParameters(chain, parameters, schemas));
  if (refusal) return refusal;
  const expansion = expandChain(chain, parameters, expansionId);
  const workflow = asWorkflow(chain, expansion, expansionId);
  return (await checkWorkflow(chain, workflow, { catalog, schemas })) ?? { ...expansion, workflow };
}

/** Refuses features of chains that this host would silently ignore. */
function checkServed({ chainId, subChains, producedVariables, compensation }: WorkflowChain): Refusal | undefined {
  if (subChains !== undefined) {
    return refuse('sub_chain_unsupported', 'This host does not support chains inside chains.', { chainId });
  }
  const requiredCapability =
    (compensation !== undefined && 'compensation') ||
    (producedVariables !== undefined && 'workflowChainPacks.producedVariables');
  if (!requiredCapability) return undefined;
  return refuse('capability_required', `The chain needs ${requiredCapability}, which this host does not serve.`, {
    requiredCapability,
    chainId,
  });
}

function checkTypes({ chainId, dag }: WorkflowChain, catalog: NodeCatalog): Refusal | undefined {
  const unknown = dag.nodes.find(({ typeId }) => !catalog.has(typeId));
  if (!unknown) return undefined;
  const { typeId, id: nodeId } = unknown;
  return refuse('chain_unresolvable_typeid', `This host has no node type ${typeId}.`, { typeId, chainId, nodeId });
}

/** An expansion would write the value of a secret into a definition, where everybody can read it. */
function checkSensitive(chain: WorkflowChain): Refusal | undefined {
  const { properties } = chain.parameters;
  const isSensitive = (name: string): boolean => {
    const property = isObject(properties) ? own(properties, name) : undefined;
    return isObject(property) && property['x-openwop-sensitive'] === true;
  };
  const parameter = [...parametersUsed(chain)].find(isSensitive);
  if (parameter === undefined) return undefined;
  const message = `The parameter ${parameter} is a secret. This host does not write secrets into workflows.`;
  return refuse('sensitive_param_not_deferrable', message, { parameter, chainId: chain.chainId });
}

async function checkParameters(
  chain: WorkflowChain,
  parameters: JsonObject,
  schemas: SchemaValidator,
): Promise<Refusal | undefined> {
  const [problem] = await problemsOf(schemas, chain.parameters, parameters);
  if (problem !== undefined) return invalidParameter(pointerOfProblem(problem), problem);
  const secret = findSecret(parameters);
  if (secret !== undefined) return invalidParameter(pointerOf(secret), 'This looks like a secret.');
  if (expandedSize(chain, parameters) <= EXPANSION_MAX) return undefined;
  return invalidParameter('', `The expansion would have more than ${EXPANSION_MAX} characters.`);
}

function invalidParameter(path: string, message: string): Refusal {
  return refuse('chain_parameter_invalid', message, { path });
}

/** The JSON pointer of a problem; for a missing member, the pointer of that member. */
function pointerOfProblem(problem: string): string {
  const [place = ''] = problem.split(' must ');
  const [, missing] = /must have required property '(.+)'$/.exec(problem) ?? [];
  const parent = place === '/' || place === problem ? '' : place;
  return missing === undefined ? parent : `${parent}/${missing}`;
}

/** The expansion must be a valid workflow, given stand-ins for the outside nodes that it refers to. */
async function checkWorkflow(
  { chainId, dag }: WorkflowChain,
  { nodes, edges }: ExpandChainReply['workflow'],
  checks: Checks,
): Promise<Refusal | undefined> {
  const whole = { ...EMPTY, nodes: [...nodes, ...outsideNodes(nodes, edges)], edges };
  const problems = await definitionProblems(whole, checks);
  const condition = problems.find(({ path }) => /^edges\[\d+\]\.condition$/.test(path));
  if (!condition) return refuseProblems(problems);
  const { from, to } = dag.edges![Number(/\d+/.exec(condition.path)![0])]!;
  return refuse('chain_edge_condition_invalid', condition.message, { chainId, from, to });
}

function outsideNodes(nodes: readonly WorkflowNode[], edges: readonly WorkflowEdge[]): WorkflowNode[] {
  const named = new Set(edges.flatMap(({ sourceNodeId, targetNodeId }) => [sourceNodeId, targetNodeId]));
  for (const { inputs } of nodes) {
    for (const port of Object.values(inputs)) if (port.type === 'connection') named.add(port.nodeId);
  }
  for (const { id } of nodes) named.delete(id);
  return [...named].map((id) => ({ ...STAND_IN, id }));
}

const STAND_IN = { typeId: 'core.noop', name: 'elsewhere', position: { x: 0, y: 0 }, config: {}, inputs: {} };
const EMPTY = { id: 'chain', name: 'chain', version: '1', triggers: [], variables: [], metadata: {}, settings: {} };

interface NextVersion {
  readonly version: string;
  readonly digest: string;
  readonly signature: PackSignature | undefined;
}

/** A version never changes, and a signed pack can only be followed by one signed with the same key. */
export function checkSuccession(next: NextVersion, known: readonly KnownVersion[]): Refusal | undefined {
  const { version } = next;
  const same = known.find((other) => other.version === version);
  if (same && same.digest !== next.digest) {
    return refuse(
      'version_conflict',
      'This version was published here before with different content. Publish the change as a later version.',
      { version },
    );
  }
  const signer = signerOf(known.find(({ removed_at }) => removed_at === null));
  if (signer !== undefined && signer !== next.signature?.publicKey) {
    const message = 'The version in use is signed, and this one is not signed with the same key. Uninstall it first.';
    return refuse('pack_signature_invalid', message, { reason: 'signer', expected: signer });
  }
  if (same || known.length < VERSIONS_MAX) return undefined;
  return refuse('conflict', `A pack may have at most ${VERSIONS_MAX} versions.`, { limit: VERSIONS_MAX });
}

function signerOf(known: KnownVersion | undefined): string | undefined {
  return known && (JSON.parse(known.provenance) as PackProvenance).signature?.publicKey;
}
