import { promptRefText } from '../../../protocol/ai/prompts.ts';
import { canonicalJson, isObject, type JsonObject } from '../../../protocol/format/json.ts';
import type { ArtifactKind } from '../../../protocol/learning/proposals.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { Packs } from '../../ai/packs/door.ts';
import type { Prompts } from '../../ai/prompts/door.ts';
import type { Caller } from '../../request.ts';
import type { Schedules } from '../../starting/schedules/door.ts';
import type { Proposals } from '../proposals/door.ts';
import { type Sketch, similarity, sketchOf } from './similarity.ts';

/** An installed or proposed artifact that drafts are compared with. */
interface Neighbour {
  readonly ref: string;
  readonly digest: string;
  readonly sketch: Sketch;
}

/** The artifacts that are similar to a draft, the most similar first. */
interface Nearness {
  readonly nearest: readonly { readonly ref: string; readonly score: number }[];
  /** The artifact that the draft duplicates. */
  readonly duplicateOf?: string | undefined;
  /** The artifact whose content is exactly that of the draft. */
  readonly restates?: string | undefined;
}

/** Where neighbours are read from. */
export interface NeighbourSources {
  readonly prompts: Pick<Prompts, 'list'>;
  readonly packs: Pick<Packs, 'list'>;
  readonly schedules: Pick<Schedules, 'list'>;
  readonly proposals: Pick<Proposals, 'list' | 'installed'>;
}

/** Similarity from which two artifacts are duplicates. */
const DUPLICATE_MIN = 0.85;
/** Similarity below which an artifact is not listed. */
const NEAR_MIN = 0.2;
const NEAREST_MAX = 5;
/** Artifacts of one kind that a draft is compared with. */
const COMPARED_MAX = 200;

/**
 * Compares drafts with what is installed or proposed already. Each kind is read once; what a scan drafts itself is
 * added.
 */
export class Neighbours {
  readonly #caller: Caller;
  readonly #sources: NeighbourSources;
  readonly #known = new Map<ArtifactKind, Promise<Neighbour[]>>();

  constructor(caller: Caller, sources: NeighbourSources) {
    this.#caller = caller;
    this.#sources = sources;
  }

  /** Ranks neighbours by similarity. The artifact that a draft revises is similar and still not a duplicate. */
  async nearTo(kind: ArtifactKind, artifact: JsonObject, revises: JsonObject | undefined): Promise<Nearness> {
    const one = neighbourOf(kind, '', artifact);
    const before = revises && neighbourOf(kind, '', revises);
    const ranked = (await this.#of(kind))
      .map(({ ref, digest, sketch }) => ({
        ref,
        score: digest === one.digest ? 1 : similarity(one.sketch, sketch),
        isRevised: digest === before?.digest,
      }))
      .filter(({ score, isRevised }) => score >= NEAR_MIN || isRevised)
      .sort((a, b) => b.score - a.score)
      .slice(0, NEAREST_MAX);
    return {
      nearest: ranked.map(({ ref, score }) => ({ ref, score: Math.round(score * 1_000) / 1_000 })),
      restates: ranked.find(({ score, isRevised }) => score === 1 && !isRevised)?.ref,
      duplicateOf: ranked.find(({ score, isRevised }) => score >= DUPLICATE_MIN && !isRevised)?.ref,
    };
  }

  /** Adds a draft, so that later drafts are compared with it. */
  async add(kind: ArtifactKind, ref: string, artifact: JsonObject): Promise<void> {
    (await this.#of(kind)).push(neighbourOf(kind, ref, artifact));
  }

  #of(kind: ArtifactKind): Promise<Neighbour[]> {
    const known = this.#known.get(kind) ?? this.#read(kind);
    this.#known.set(kind, known);
    return known;
  }

  /** Artifacts that proposals installed are named by the reference of their installation. */
  async #read(kind: ArtifactKind): Promise<Neighbour[]> {
    const { subject } = this.#caller;
    const installed = await this.#sources.proposals.installed(subject, undefined, COMPARED_MAX);
    const learnt = installed
      .filter((row) => row.kind === kind)
      .map(({ ref, text }) => neighbourOf(kind, ref, JSON.parse(text) as JsonObject));
    const others = (await this.#installedElsewhere(kind)).filter(
      ({ digest }) => !learnt.some((one) => one.digest === digest),
    );
    const open: Neighbour[] = [];
    for (const state of ['draft', 'revised']) {
      const rows = await this.#sources.proposals.list(subject, { kind, state }, COMPARED_MAX);
      open.push(...rows.map((row) => neighbourOf(kind, row.proposal_id, JSON.parse(row.text) as JsonObject)));
    }
    return [...learnt, ...others, ...open];
  }

  async #installedElsewhere(kind: ArtifactKind): Promise<Neighbour[]> {
    const { prompts, packs, schedules } = this.#sources;
    switch (kind) {
      case 'prompt-template': {
        const found = await prompts.list(this.#caller, {}, '', COMPARED_MAX);
        return found.map(({ template }) => neighbourOf(kind, promptRefText(template), template));
      }
      case 'workflow-chain-pack':
      case 'agent-pack': {
        const found = await packs.list(this.#caller, undefined, COMPARED_MAX);
        return found.flatMap(({ manifest }) => {
          const artifact = manifest;
          const isOfKind = Object.hasOwn(artifact, kind === 'agent-pack' ? 'agents' : 'chains');
          return isOfKind ? [neighbourOf(kind, `pack:${manifest.name}@${manifest.version}`, artifact)] : [];
        });
      }
      case 'automation': {
        const found = await schedules.list(this.#caller, {}, COMPARED_MAX);
        return found.map((schedule) => neighbourOf(kind, `schedule:${schedule.id}`, schedule));
      }
    }
  }
}

function neighbourOf(kind: ArtifactKind, ref: string, artifact: JsonObject): Neighbour {
  const content = CONTENT_OF[kind](artifact);
  return { ref, digest: sha256Hex(canonicalJson(content)), sketch: sketchOf(content) };
}

/** The content of an artifact that is compared: what it does, without names and versions. */
const CONTENT_OF: Record<ArtifactKind, (artifact: JsonObject) => JsonObject> = {
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
    // By field, so that a schedule at another minute is still similar.
    when: typeof cron === 'string' ? { ...cron.trim().split(/\s+/).slice(-5) } : { runAt },
    timezone,
  }),
};

function listOf(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
