import { promptRefText } from '../../../protocol/ai/prompts.ts';
import { canonicalJson, isObject, type JsonObject } from '../../../protocol/format/json.ts';
import type { ArtifactKind } from '../../../protocol/learning/proposals.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { Packs } from '../../ai/packs/door.ts';
import type { Prompts } from '../../ai/prompts/door.ts';
import type { Caller } from '../../request.ts';
import type { Schedules } from '../../starting/schedules/door.ts';
import type { ProposalService } from '../proposals/service.ts';
import { likeness, type Sketch, sketchOf } from './similarity.ts';

/** Something that is installed, or waits to be: what to call it, and what it comes to. */
interface Neighbour {
  readonly ref: string;
  readonly digest: string;
  readonly sketch: Sketch;
}

/** What is like a draft, the most alike first. */
export interface Nearness {
  readonly nearest: readonly { readonly ref: string; readonly score: number }[];
  /** What it restates. */
  readonly duplicateOf?: string | undefined;
}

export interface Neighbourhood {
  readonly prompts: Pick<Prompts, 'list'>;
  readonly packs: Pick<Packs, 'list'>;
  readonly schedules: Pick<Schedules, 'list'>;
  readonly proposals: Pick<ProposalService, 'list' | 'installed'>;
}

/** From here on two artifacts say the same. */
const DUPLICATE_MIN = 0.85;
/** What is less alike is not worth a look. */
const NEAR_MIN = 0.2;
const NEAREST_MAX = 5;
/** Things of one kind that a draft is held against. */
const HELD_AGAINST_MAX = 200;

/**
 * Knows what there is already, so that a draft can be held against it. Each kind is read once; what a pass drafts
 * itself is added.
 */
export class Neighbours {
  readonly #caller: Caller;
  readonly #hood: Neighbourhood;
  readonly #known = new Map<ArtifactKind, Promise<Neighbour[]>>();

  constructor(caller: Caller, hood: Neighbourhood) {
    this.#caller = caller;
    this.#hood = hood;
  }

  /** What it revises is near by nature, and no duplicate. */
  async nearTo(kind: ArtifactKind, artifact: JsonObject, revises: JsonObject | undefined): Promise<Nearness> {
    const one = neighbourOf(kind, '', artifact);
    const before = revises && neighbourOf(kind, '', revises);
    const ranked = (await this.#of(kind))
      .map(({ ref, digest, sketch }) => ({
        ref,
        score: digest === one.digest ? 1 : likeness(one.sketch, sketch),
        isRevised: digest === before?.digest,
      }))
      .filter(({ score, isRevised }) => score >= NEAR_MIN || isRevised)
      .sort((a, b) => b.score - a.score)
      .slice(0, NEAREST_MAX);
    return {
      nearest: ranked.map(({ ref, score }) => ({ ref, score: Math.round(score * 1_000) / 1_000 })),
      duplicateOf: ranked.find(({ score, isRevised }) => score >= DUPLICATE_MIN && !isRevised)?.ref,
    };
  }

  async add(kind: ArtifactKind, ref: string, artifact: JsonObject): Promise<void> {
    (await this.#of(kind)).push(neighbourOf(kind, ref, artifact));
  }

  #of(kind: ArtifactKind): Promise<Neighbour[]> {
    const known = this.#known.get(kind) ?? this.#read(kind);
    this.#known.set(kind, known);
    return known;
  }

  /** What proposals have installed goes by the name that it was given then. */
  async #read(kind: ArtifactKind): Promise<Neighbour[]> {
    const { subject } = this.#caller;
    const installed = await this.#hood.proposals.installed(subject, undefined, HELD_AGAINST_MAX);
    const learnt = installed
      .filter((row) => row.kind === kind)
      .map(({ ref, text }) => neighbourOf(kind, ref, JSON.parse(text) as JsonObject));
    const others = (await this.#present(kind)).filter(({ digest }) => !learnt.some((one) => one.digest === digest));
    const open: Neighbour[] = [];
    for (const state of ['draft', 'revised']) {
      const rows = await this.#hood.proposals.list(subject, { kind, state }, HELD_AGAINST_MAX);
      open.push(...rows.map((row) => neighbourOf(kind, row.proposal_id, JSON.parse(row.text) as JsonObject)));
    }
    return [...learnt, ...others, ...open];
  }

  async #present(kind: ArtifactKind): Promise<Neighbour[]> {
    const { prompts, packs, schedules } = this.#hood;
    switch (kind) {
      case 'prompt-template': {
        const found = await prompts.list(this.#caller, {}, '', HELD_AGAINST_MAX);
        return found.map(({ template }) =>
          neighbourOf(kind, promptRefText(template), template as unknown as JsonObject),
        );
      }
      case 'workflow-chain-pack':
      case 'agent-pack': {
        const found = await packs.list(this.#caller, undefined, HELD_AGAINST_MAX);
        return found.flatMap(({ manifest }) => {
          const artifact = manifest as unknown as JsonObject;
          const isOfKind = Object.hasOwn(artifact, kind === 'agent-pack' ? 'agents' : 'chains');
          return isOfKind ? [neighbourOf(kind, `pack:${manifest.name}@${manifest.version}`, artifact)] : [];
        });
      }
      case 'automation': {
        const found = await schedules.list(this.#caller, {}, HELD_AGAINST_MAX);
        return found.map((schedule) => neighbourOf(kind, `schedule:${schedule.id}`, schedule as unknown as JsonObject));
      }
    }
  }
}

function neighbourOf(kind: ArtifactKind, ref: string, artifact: JsonObject): Neighbour {
  const essence = ESSENCES[kind](artifact);
  return { ref, digest: sha256Hex(canonicalJson(essence)), sketch: sketchOf(essence) };
}

/** What an artifact does, without its names and versions. */
const ESSENCES: Record<ArtifactKind, (artifact: JsonObject) => JsonObject> = {
  'prompt-template': ({ kind, text, variables = [] }) => ({
    kind,
    text,
    variables: listOf(variables).map(({ name }) => name),
  }),
  'workflow-chain-pack': ({ chains }) => ({
    chains: listOf(chains).map(({ dag }) => {
      const { nodes, edges = [] } = isObject(dag) ? dag : {};
      return {
        types: listOf(nodes).map(({ typeId }) => typeId),
        settings: listOf(nodes).map(({ config = {}, inputs = {} }) => ({ config, inputs })),
        edges: listOf(edges).length,
      };
    }),
  }),
  'agent-pack': ({ agents }) => ({
    agents: listOf(agents).map(({ systemPrompt, toolAllowlist = [] }) => ({ systemPrompt, toolAllowlist })),
  }),
  automation: ({ workflowId, inputs = {}, cron, runAt, timezone = 'UTC' }) => ({
    workflowId,
    inputs,
    // By its fields, so that another minute is not another thing altogether.
    when: typeof cron === 'string' ? { ...cron.trim().split(/\s+/).slice(-5) } : { runAt },
    timezone,
  }),
};

function listOf(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
