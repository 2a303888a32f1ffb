import {
  agentsOf,
  chainsOf,
  type FragmentNode,
  type PackManifest,
  type WorkflowChain,
} from '../../../../protocol/ai/packs.ts';
import { PROMPT_KINDS, parsePromptRef } from '../../../../protocol/ai/prompts.ts';
import type { JsonObject } from '../../../../protocol/format/json.ts';
import { promptRefsOf } from '../../../../runtime/prompts.ts';
import type { Runtime } from '../../../../runtime/runtime.ts';
import { findAvailable } from '../../../../runtime/tools.ts';
import type { Visibility } from '../../../../store/log.ts';
import type { Packs } from '../../../ai/packs/door.ts';
import type { Prompts } from '../../../ai/prompts/door.ts';
import type { Problem } from './installer.ts';

/** Where the things are that an artifact refers to. */
interface ReferenceTargets {
  readonly runtime: Pick<Runtime, 'catalog' | 'tools' | 'clock'>;
  readonly packs: Pick<Packs, 'agent'>;
  readonly prompts: Pick<Prompts, 'find'>;
}

/** Marks a value that an expansion fills in, so that nobody can say yet what it names. */
const PARAMETER = '{{';

/** What a valid pack refers to and this host does not have: nodes, node types, prompts, agents and tools. */
export class References {
  readonly #targets: ReferenceTargets;

  constructor(targets: ReferenceTargets) {
    this.#targets = targets;
  }

  /** The references of a pack that lead nowhere, each with its place. */
  async problemsOf(from: Visibility, manifest: PackManifest): Promise<Problem[]> {
    const problems: Problem[] = [];
    for (const [index, chain] of chainsOf(manifest).entries()) {
      problems.push(...edgeProblems(chain, `/chains/${index}/dag/edges`));
      for (const [at, node] of chain.dag.nodes.entries()) {
        problems.push(...(await this.#nodeProblems(from, node, `/chains/${index}/dag/nodes/${at}`)));
      }
    }
    for (const [index, { toolAllowlist = [], promptOverrides = {} }] of agentsOf(manifest).entries()) {
      const path = `/agents/${index}`;
      problems.push(...(await this.#toolProblems(from, toolAllowlist, `${path}/toolAllowlist`)));
      problems.push(...(await this.#promptProblems(from, Object.values(promptOverrides), `${path}/promptOverrides`)));
    }
    return problems;
  }

  async #nodeProblems(from: Visibility, { typeId, config = {} }: FragmentNode, path: string): Promise<Problem[]> {
    const { runtime } = this.#targets;
    if (!runtime.catalog.has(typeId)) return [{ path: `${path}/typeId`, message: 'is not a node type of this host' }];
    const { agentId, tools } = config;
    const names = Array.isArray(tools) ? tools.filter((name) => typeof name === 'string') : [];
    return [
      ...(await this.#promptProblems(from, refsIn(config), `${path}/config`)),
      ...(await this.#agentProblems(from, agentId, `${path}/config/agentId`)),
      ...(await this.#toolProblems(from, names, `${path}/config/tools`)),
    ];
  }

  async #promptProblems(from: Visibility, refs: readonly unknown[], path: string): Promise<Problem[]> {
    const targets = refs.flatMap((ref) => parsePromptRef(ref) ?? []);
    const found = await Promise.all(targets.map((target) => this.#targets.prompts.find(from, target)));
    return targets.flatMap(({ templateId }, index) =>
      found[index] || templateId.includes(PARAMETER) ? [] : [{ path, message: `names no prompt: ${templateId}` }],
    );
  }

  async #agentProblems(from: Visibility, agentId: unknown, path: string): Promise<Problem[]> {
    if (typeof agentId !== 'string' || agentId.includes(PARAMETER)) return [];
    const [name = '', version] = agentId.split('@');
    return (await this.#targets.packs.agent(from, name, version)) ? [] : [{ path, message: 'names no agent' }];
  }

  async #toolProblems(from: Visibility, names: readonly string[], path: string): Promise<Problem[]> {
    const { runtime } = this.#targets;
    const found = await Promise.all(
      names.map(async (name) => name.includes(PARAMETER) || (await findAvailable(runtime, from, name)) !== undefined),
    );
    return names.flatMap((_name, index) =>
      found[index] ? [] : [{ path: `${path}/${index}`, message: 'names no tool' }],
    );
  }
}

/** What a node's settings say about prompts. */
function refsIn(config: JsonObject): unknown[] {
  return PROMPT_KINDS.flatMap((kind) => promptRefsOf(config, kind));
}

/** The ends of edges that name no node of their chain. An end is `node` or `node.port`. */
function edgeProblems({ dag }: WorkflowChain, path: string): Problem[] {
  const known = new Set(dag.nodes.map(({ id }) => id));
  const isKnown = (end: string): boolean => known.has(end) || known.has(end.split('.', 1)[0]!);
  return (dag.edges ?? []).flatMap((edge, index) =>
    (['from', 'to'] as const).flatMap((end) =>
      isKnown(edge[end]) ? [] : [{ path: `${path}/${index}/${end}`, message: 'names no node of the chain' }],
    ),
  );
}
