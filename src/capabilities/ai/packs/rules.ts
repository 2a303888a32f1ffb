import { Compile } from 'typebox/compile';
import {
  asWorkflow,
  type Expansion,
  expandChain,
  expandedSize,
  parametersUsed,
} from '../../../engine/definition/chain.ts';
import { checkDefinition, failure, type NodeCatalog } from '../../../engine/definition/check.ts';
import { compileSchema } from '../../../engine/expressions/json-schema.ts';
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
import type { WorkflowEdge, WorkflowNode } from '../../../protocol/running/workflows.ts';
import { placesOfMisfits } from '../../../runtime/catalog.ts';
import { findSecret } from '../../../system/redaction.ts';
import { refuseProblems } from '../../running/workflows/door.ts';
import type { KnownVersion } from './records.ts';
import { takesMajor } from './version-ranges.ts';

/** What says what a pack is of; a pack has one of them. */
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

/** Something wrong with a manifest: where, as a JSON pointer, and what. */
export interface Misfit {
  readonly path: string;
  readonly message: string;
}

const chainShape = Compile(WorkflowChainPackManifest);
const agentShape = Compile(AgentPackManifest);

/** Everything that can be said about `pack.json` by itself. */
export function checkManifest(manifest: unknown): Refusal | undefined {
  if (!isObject(manifest)) return invalid([{ path: '', message: 'must be an object' }]);
  return checkKind(manifest) ?? invalid(shapeMisfits(manifest)) ?? invalid(misfitsOf(manifest as PackManifest));
}

export function invalid(misfits: readonly Misfit[]): Refusal | undefined {
  const [first] = misfits;
  if (!first) return undefined;
  const message = `pack.json${first.path && ` at ${first.path}`} ${first.message}.`;
  return refuse('invalid_manifest', message, { path: first.path, fields: misfits.slice(0, PROBLEMS_MAX) });
}

/** A pack that is for something else is told so, before its shape is held against it. */
function checkKind(manifest: JsonObject): Refusal | undefined {
  const { kind = 'node' } = manifest;
  const meant = typeof kind === 'string' ? own(CONTENTS, kind) : undefined;
  if (!meant) return refuse('pack_kind_invalid', 'There is no such kind of pack.', { path: '/kind' });
  const isDeclarative = kind !== 'node';
  const foreign = [...Object.values(CONTENTS).flat(), ...(isDeclarative ? ['runtime'] : [])].find(
    (name) => Object.hasOwn(manifest, name) && !meant.includes(name),
  );
  if (foreign) {
    const message = `A pack of the kind ${kind} has no ${foreign}: a pack has contents of one kind.`;
    return refuse('pack_kind_invalid', message, { path: `/${foreign}` });
  }
  if (kind === 'workflow-chain') return undefined;
  const { nodes = [], agents } = manifest;
  if (kind === 'node' && agents !== undefined && Array.isArray(nodes) && nodes.length === 0) return undefined;
  const requiredCapability = `packs.${kind}`;
  const message = 'This host installs packs of workflow chains and packs of agents only.';
  return refuse('capability_required', message, { requiredCapability });
}

/** The protocol's own names are given by registries, to keys that may sign such packs: a file shows no such thing. */
export function checkNamespace(
  { name }: PackManifest,
  { source }: Pick<PackProvenance, 'source'>,
): Refusal | undefined {
  if (source !== 'file' || !name.startsWith('core.')) return undefined;
  const message = 'Packs whose names begin with core. come from registries alone. Call it vendor.… or private.…';
  return refuse('pack_namespace_unauthorized', message, { name });
}

/** What a pack needs must be here, unless it can do without. */
export function checkPeers(manifest: PackManifest, isAdvertised: (capability: string) => boolean): Refusal | undefined {
  const missing = peersOf(manifest).find(({ isOptional, capability }) => !isOptional && !isAdvertised(capability));
  if (!missing) return undefined;
  const { capability } = missing;
  return refuse('pack_peer_dependency_missing', `This host does not have ${capability}, which the pack needs.`, {
    capability,
    requiredCapability: capability,
  });
}

/** What a pack says that it needs of its host. */
export function peersOf(manifest: PackManifest): readonly { capability: string; isOptional: boolean }[] {
  if (!('agents' in manifest)) return [];
  const { peerDependencies = {}, peerDependenciesMeta } = manifest;
  return Object.keys(peerDependencies).map((capability) => ({
    capability,
    isOptional: own(peerDependenciesMeta, capability)?.optional === true,
  }));
}

function shapeMisfits(manifest: JsonObject): Misfit[] {
  const shape = manifest.kind === 'workflow-chain' ? chainShape : agentShape;
  return placesOfMisfits(shape, manifest);
}

function misfitsOf(manifest: PackManifest): Misfit[] {
  const secret = findSecret(manifest);
  const chains = chainsOf(manifest);
  return [
    ...engineMisfits(manifest.engines.openwop),
    ...twice(
      chains.map(({ chainId }) => chainId),
      (index) => `/chains/${index}/chainId`,
    ),
    ...twice(
      agentsOf(manifest).map(({ agentId }) => agentId),
      (index) => `/agents/${index}/agentId`,
    ),
    ...chains.flatMap((chain, index) => chainMisfits(chain, `/chains/${index}`)),
    ...(secret === undefined ? [] : [{ path: pointerOf(secret), message: 'looks like a secret' }]),
  ];
}

/** A pack for another major speaks of things that are not here, or mean something else. */
function engineMisfits(range: string): Misfit[] {
  const isMeant = takesMajor(range, PROTOCOL_MAJOR);
  if (isMeant) return [];
  const message =
    isMeant === undefined
      ? 'is not a range of versions'
      : `leaves out version ${PROTOCOL_MAJOR}, which this host speaks`;
  return [{ path: '/engines/openwop', message }];
}

function chainMisfits({ dag, parameters }: WorkflowChain, path: string): Misfit[] {
  const [broken] = failure(() => compileSchema(parameters));
  return [
    ...twice(
      dag.nodes.map(({ id }) => id),
      (index) => `${path}/dag/nodes/${index}/id`,
    ),
    ...(dag.nodes.length > 1 && !dag.edges ? [{ path: `${path}/dag/edges`, message: 'is missing' }] : []),
    ...(broken === undefined ? [] : [{ path: `${path}/parameters`, message: `is not a JSON Schema: ${broken}` }]),
  ];
}

function twice(values: readonly string[], pathOf: (index: number) => string): Misfit[] {
  const first = new Map<string, number>();
  for (const [index, value] of values.entries()) if (!first.has(value)) first.set(value, index);
  return values.flatMap((value, index) =>
    first.get(value) === index ? [] : [{ path: pathOf(index), message: 'is there already' }],
  );
}

export interface ExpansionRequest {
  readonly parameters: JsonObject;
  readonly expansionId: string;
}

/** A chain filled in, fit to become part of a workflow here; or why it is not. */
export function expand(
  chain: WorkflowChain,
  { parameters, expansionId }: ExpansionRequest,
  catalog: NodeCatalog,
): (Expansion & Pick<ExpandChainReply, 'workflow'>) | Refusal {
  const refusal =
    checkServed(chain) ?? checkTypes(chain, catalog) ?? checkSensitive(chain) ?? checkParameters(chain, parameters);
  if (refusal) return refusal;
  const expansion = expandChain(chain, parameters, expansionId);
  const workflow = asWorkflow(chain, expansion, expansionId);
  return checkWorkflow(chain, workflow, catalog) ?? { ...expansion, workflow };
}

/** What would do nothing here must not look as if it did. */
function checkServed({ chainId, subChains, producedVariables, compensation }: WorkflowChain): Refusal | undefined {
  if (subChains !== undefined) {
    return refuse('sub_chain_unsupported', 'This host does not run chains inside chains.', { chainId });
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

/** The value of a secret would be written into a definition, where everybody can read it. */
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

function checkParameters(chain: WorkflowChain, parameters: JsonObject): Refusal | undefined {
  const [problem] = compileSchema(chain.parameters)(parameters);
  if (problem !== undefined) return unfit(placeOf(problem), problem);
  const secret = findSecret(parameters);
  if (secret !== undefined) return unfit(pointerOf(secret), 'This looks like a secret.');
  if (expandedSize(chain, parameters) <= EXPANSION_MAX) return undefined;
  return unfit('', `The expansion would have more than ${EXPANSION_MAX} characters.`);
}

function unfit(path: string, message: string): Refusal {
  return refuse('chain_parameter_invalid', message, { path });
}

/** The pointer that a problem begins with, to the very member where one is missing. */
function placeOf(problem: string): string {
  const [place = ''] = problem.split(' must ');
  const [, missing] = /must have required property '(.+)'$/.exec(problem) ?? [];
  const parent = place === '/' || place === problem ? '' : place;
  return missing === undefined ? parent : `${parent}/${missing}`;
}

/** The expansion has to be a workflow, once those are there whom it names and does not bring. */
function checkWorkflow(
  { chainId, dag }: WorkflowChain,
  { nodes, edges }: ExpandChainReply['workflow'],
  catalog: NodeCatalog,
): Refusal | undefined {
  const problems = checkDefinition({ ...EMPTY, nodes: [...nodes, ...outsiders(nodes, edges)], edges }, catalog);
  const condition = problems.find(({ path }) => /^edges\[\d+\]\.condition$/.test(path));
  if (!condition) return refuseProblems(problems);
  const { from, to } = dag.edges![Number(/\d+/.exec(condition.path)![0])]!;
  return refuse('chain_edge_condition_invalid', condition.message, { chainId, from, to });
}

function outsiders(nodes: readonly WorkflowNode[], edges: readonly WorkflowEdge[]): WorkflowNode[] {
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

/** A version never changes, and who has signed a pack once goes on signing it. */
export function checkSuccession(next: NextVersion, known: readonly KnownVersion[]): Refusal | undefined {
  const { version } = next;
  const same = known.find((other) => other.version === version);
  if (same && same.digest !== next.digest) {
    return refuse('version_conflict', 'This version is something else here, and versions do not change.', { version });
  }
  const signer = signerOf(known.find(({ removed_at }) => removed_at === null));
  if (signer !== undefined && signer !== next.signature?.publicKey) {
    const message = 'The version in use is signed, and this one is not signed with the same key. Uninstall it first.';
    return refuse('pack_signature_invalid', message, { reason: 'signer', expected: signer });
  }
  if (same || known.length < VERSIONS_MAX) return undefined;
  return refuse('conflict', `A pack may have ${VERSIONS_MAX} versions here.`, { limit: VERSIONS_MAX });
}

function signerOf(known: KnownVersion | undefined): string | undefined {
  return known && (JSON.parse(known.provenance) as PackProvenance).signature?.publicKey;
}
