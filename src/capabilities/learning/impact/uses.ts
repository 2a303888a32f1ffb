import { VERIFY } from '../../../engine/people/verdict.ts';
import type { AgentManifest } from '../../../protocol/ai/agents.ts';
import { PROMPT_KINDS, parsePromptRef, promptRefText } from '../../../protocol/ai/prompts.ts';
import type { Goal } from '../../../protocol/learning/goals.ts';
import type { ImpactedUse } from '../../../protocol/learning/impact.ts';
import type { WorkflowDefinition, WorkflowNode } from '../../../protocol/running/workflows.ts';
import { promptRefsOf } from '../../../runtime/prompts.ts';

/** A use, and whether it names a version. */
export interface Use {
  readonly use: ImpactedUse;
  readonly isPinned: boolean;
}

type AgentPrompts = Pick<AgentManifest, 'agentId' | 'promptOverrides'>;

/** The uses of a prompt template by agents. */
export function promptUsesOfAgents(templateId: string, agents: readonly AgentPrompts[]): Use[] {
  return agents.flatMap(({ agentId, promptOverrides = {} }) =>
    refsTo(templateId, Object.values(promptOverrides)).map(({ ref, isPinned }) => ({
      use: { kind: 'agent' as const, id: agentId, ref },
      isPinned,
    })),
  );
}

/** The uses of a prompt template in workflows: by nodes, by defaults, and by nodes that use an agent which uses it. */
export function promptUses(
  templateId: string,
  definitions: readonly WorkflowDefinition[],
  ofAgents: readonly Use[],
): Use[] {
  const following = ofAgents.filter(({ isPinned }) => !isPinned).map(({ use }) => use.id);
  const ofNodes = definitions.flatMap(({ id, nodes, defaults }) => {
    const byDefault = refsTo(templateId, Object.values(defaults?.promptRefs ?? {}));
    const byNode = nodes.flatMap((node) =>
      refsTo(templateId, refsIn(node)).map((found) => ({ ...found, nodeId: node.id })),
    );
    return [...byDefault, ...byNode].map(({ isPinned, ...rest }) => ({
      use: { kind: 'workflow' as const, id, ...rest },
      isPinned,
    }));
  });
  const throughAgents = agentUses(following, definitions).map(({ use, isPinned }) => ({
    use: { ...use, ref: `prompt:${templateId}`, via: use.ref },
    isPinned,
  }));
  return [...ofNodes, ...throughAgents];
}

/** The nodes that use some agents. A version after the name, as in `name@1.0.0`, pins it. */
export function agentUses(agentIds: readonly string[], definitions: readonly WorkflowDefinition[]): Use[] {
  return definitions.flatMap(({ id, nodes }) =>
    nodes.flatMap((node) => {
      const { agentId = node.config.agentId } = node.agent ?? {};
      const [name = '', version] = typeof agentId === 'string' ? agentId.split('@') : [];
      if (!agentIds.includes(name)) return [];
      const use = { kind: 'workflow' as const, id, nodeId: node.id, ref: String(agentId) };
      return [{ use, isPinned: version !== undefined }];
    }),
  );
}

/** The nodes that judge by a verifier. */
export function verifierUses(verifierId: string, definitions: readonly WorkflowDefinition[]): Use[] {
  return definitions.flatMap(({ id, nodes }) =>
    nodes.flatMap(({ id: nodeId, typeId, config: { verifierRef } }) => {
      const isPinned = typeId === VERIFY ? pinOf(verifierId, verifierRef) : undefined;
      return isPinned === undefined
        ? []
        : [{ use: { kind: 'workflow' as const, id, nodeId, ref: String(verifierRef) }, isPinned }];
    }),
  );
}

/** The goals that are judged by a verifier and are not over. */
export function goalUses(verifierId: string, goals: readonly Pick<Goal, 'id' | 'completion'>[]): Use[] {
  return goals.flatMap(({ id, completion: { check, verifierRef } }) => {
    const isPinned = check === 'verifier' ? pinOf(verifierId, verifierRef) : undefined;
    return isPinned === undefined ? [] : [{ use: { kind: 'goal' as const, id, ref: String(verifierRef) }, isPinned }];
  });
}

/** Whether a reference names a version of a verifier; undefined if it names another one. */
function pinOf(verifierId: string, ref: unknown): boolean | undefined {
  const [, name = ref, version] = /^(.+)@([1-9][0-9]*)$/.exec(String(ref)) ?? [];
  return name === verifierId ? version !== undefined : undefined;
}

function refsIn({ config }: WorkflowNode): unknown[] {
  return PROMPT_KINDS.flatMap((kind) => promptRefsOf(config, kind));
}

function refsTo(templateId: string, refs: readonly unknown[]): { readonly ref: string; readonly isPinned: boolean }[] {
  return refs
    .flatMap((ref) => parsePromptRef(ref) ?? [])
    .filter((target) => target.templateId === templateId)
    .map((target) => ({ ref: promptRefText(target), isPinned: target.version !== undefined }));
}
