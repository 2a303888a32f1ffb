import {
  type PromptKind,
  type PromptLayer,
  type PromptResolved,
  type PromptTarget,
  parsePromptRef,
  promptRefText,
} from '../../protocol/ai/prompts.ts';
import { type JsonObject, own } from '../../protocol/format/json.ts';

/** The prompt reference that each layer provides for one prompt of a node, unparsed. */
interface PromptCandidates {
  readonly kind: PromptKind;
  readonly run?: unknown;
  readonly node?: unknown;
  /** Set only if an agent is bound to the node. */
  readonly agent?: AgentPrompts | undefined;
  readonly workflow?: unknown;
  readonly host?: unknown;
}

/** The prompts in an agent's manifest. */
export interface AgentPrompts {
  readonly agentId: string;
  readonly systemPrompt?: string;
  readonly systemPromptRef?: string;
  readonly promptOverrides?: JsonObject | undefined;
}

/** The chosen prompt, and every layer that was considered. */
export interface PromptChoice {
  readonly chain: PromptResolved['chain'];
  readonly resolved: string | null;
  /** The chosen prompt, if it is in a library. */
  readonly target?: PromptTarget;
}

type Link = PromptResolved['chain'][number];

interface Candidate {
  readonly layer: PromptLayer;
  readonly source?: string;
  readonly target?: PromptTarget;
  readonly reason?: string;
}

/**
 * Picks the first layer that provides a prompt (RFC 0029). All layers are listed in the result, to explain the choice.
 */
export function choosePrompt(candidates: PromptCandidates): PromptChoice {
  const layers = layersOf(candidates);
  const winner = layers.find(({ source }) => source !== undefined);
  const chain = layers.map((candidate) => linkOf(candidate, winner));
  if (winner?.source === undefined) return { chain, resolved: null };
  return { chain, resolved: winner.source, ...(winner.target ? { target: winner.target } : {}) };
}

/** Adds the version that the library resolved to a choice. */
export function pinChoice(choice: PromptChoice, version: string): PromptChoice {
  if (!choice.target) return choice;
  const target = { ...choice.target, version };
  const resolved = promptRefText(target);
  const chain = choice.chain.map((link) => (link.applied ? { ...link, source: resolved } : link));
  return { chain, resolved, target };
}

function layersOf({ kind, run, node, agent, workflow, host }: PromptCandidates): Candidate[] {
  return [
    reference('run-configurable', run),
    reference('node', node),
    ...(agent ? agentLayers(agent, kind) : []),
    reference('workflow-defaults', workflow),
    reference('host-defaults', host),
  ];
}

/** The agent's own system prompt precedes the overrides in its manifest. */
function agentLayers(agent: AgentPrompts, kind: PromptKind): Candidate[] {
  const isIntrinsic = kind === 'system' && (agent.systemPrompt ?? agent.systemPromptRef) !== undefined;
  return [
    isIntrinsic
      ? { layer: 'agent-intrinsic', source: `prompt:${agent.agentId.toLowerCase()}` }
      : { layer: 'agent-intrinsic', reason: NOTHING },
    reference('agent-overrides', own(agent.promptOverrides, kind)),
    { layer: 'agent-library-default', reason: NOTHING },
  ];
}

const NOTHING = 'nothing at this layer';

function reference(layer: PromptLayer, value: unknown): Candidate {
  if (value === undefined || value === null) return { layer, reason: NOTHING };
  const target = parsePromptRef(value);
  return target ? { layer, target, source: promptRefText(target) } : { layer, reason: 'not a prompt reference' };
}

function linkOf({ layer, source, reason }: Candidate, winner: Candidate | undefined): Link {
  const isApplied = layer === winner?.layer;
  const why = isApplied ? undefined : source === undefined ? reason : `${winner!.layer} comes first`;
  return {
    layer,
    applied: isApplied,
    ...(source === undefined ? {} : { source }),
    ...(why === undefined ? {} : { reason: why }),
  };
}
