import {
  type PromptKind,
  type PromptLayer,
  type PromptResolved,
  type PromptTarget,
  parsePromptRef,
  promptRefText,
} from '../../protocol/ai/prompts.ts';
import { type JsonObject, own } from '../../protocol/format/json.ts';

/** What each layer has to say about one prompt of a node; references as they are written. */
export interface PromptCandidates {
  readonly kind: PromptKind;
  readonly run?: unknown;
  readonly node?: unknown;
  /** Only for a node that an agent is bound to. */
  readonly agent?: AgentPrompts | undefined;
  readonly workflow?: unknown;
  readonly host?: unknown;
}

/** The prompts that an agent brings along, as its manifest has them. */
export interface AgentPrompts {
  readonly agentId: string;
  readonly systemPrompt?: string;
  readonly systemPromptRef?: string;
  readonly promptOverrides?: JsonObject | undefined;
}

export interface PromptChoice {
  readonly chain: PromptResolved['chain'];
  readonly resolved: string | null;
  /** What was chosen, where it is in a library. */
  readonly target?: PromptTarget;
}

type Link = PromptResolved['chain'][number];

interface Candidate {
  readonly layer: PromptLayer;
  readonly source?: string;
  readonly target?: PromptTarget;
  readonly reason?: string;
}

/** RFC 0029: the first layer that has something wins. All of them are listed, so that people see why. */
export function choosePrompt(candidates: PromptCandidates): PromptChoice {
  const layers = layersOf(candidates);
  const winner = layers.find(({ source }) => source !== undefined);
  const chain = layers.map((candidate) => linkOf(candidate, winner));
  if (winner?.source === undefined) return { chain, resolved: null };
  return { chain, resolved: winner.source, ...(winner.target ? { target: winner.target } : {}) };
}

/** The choice with the version that the library has for it. */
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

/** What makes the agent what it is comes before what its manifest puts in the place of others. */
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
