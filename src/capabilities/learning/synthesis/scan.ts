import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import { defined, type JsonObject } from '../../../protocol/format/json.ts';
import type { ArtifactKind, Proposal } from '../../../protocol/learning/proposals.ts';
import { and, changeOf, perform } from '../../../runtime/change.ts';
import { ownerOf } from '../../../store/definitions.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { type PersonalDataKind, redactPersonalData } from '../../../system/personal-data.ts';
import { redactValue } from '../../../system/redaction.ts';
import {
  KNOWN_EVIDENCE,
  type Draft as ProposalDraft,
  type Evidence as ProposalEvidence,
  type Proposals,
  TOO_MANY_PENDING,
} from '../proposals/door.ts';
import { findAutomations } from './automations.ts';
import { findChains } from './chains.ts';
import { findCorrectedPrompts } from './corrected-prompts.ts';
import { type Draft, EVIDENCE_MAX, type Evidence, type Habit, type MiningContext } from './habit.ts';
import type { Neighbours } from './neighbours.ts';
import { findHabit, type HabitRow, recordHabit } from './records.ts';
import { findToolUsers } from './tool-users.ts';
import { type WordedDraft, type Writer, wordDraft } from './wording.ts';

const MINERS: Record<ArtifactKind, (mining: MiningContext) => AsyncGenerator<Habit>> = {
  'prompt-template': findCorrectedPrompts,
  'workflow-chain-pack': findChains,
  'agent-pack': findToolUsers,
  automation: findAutomations,
};

/** Names of nodes may be long, so the texts that are made of them are cut. */
const TITLE_CHARS_MAX = 200;
const RATIONALE_CHARS_MAX = 4_000;
const WHY_CHARS_MAX = 500;
/** Drafts that a model words in one scan; the others keep the words of their templates. */
const WORDED_MAX = 10;

/** What one scan works with. */
interface ScanOptions {
  readonly mining: MiningContext;
  readonly proposals: Pick<Proposals, 'draft'>;
  readonly neighbours: Neighbours;
  readonly writer: Writer | undefined;
  readonly kinds: readonly ArtifactKind[];
  readonly personalData?: readonly PersonalDataKind[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What a scan drafted. */
export interface ScanResult {
  readonly created: readonly Proposal[];
  /** Whether it stopped because too many proposals wait for a decision. */
  readonly pendingLimitReached?: true;
}

/** One scan: every miner looks for habits, and a proposal is drafted for each that is new or has grown. */
export class Scan {
  readonly #options: ScanOptions;
  #wordedCount = 0;

  constructor(options: ScanOptions) {
    this.#options = options;
  }

  /** Drafts proposals until the tenant has as many pending ones as it may have. */
  async run(): Promise<ScanResult> {
    const { mining, kinds, signal } = this.#options;
    const created: Proposal[] = [];
    for (const kind of kinds) {
      for await (const habit of MINERS[kind](mining)) {
        if (signal?.aborted) return { created };
        const outcome = await this.#propose(habit);
        if (outcome === TOO_MANY_PENDING) return { created, pendingLimitReached: true };
        if (outcome && !isRefusal(outcome)) created.push(outcome);
      }
    }
    return { created };
  }

  async #propose(habit: Habit): Promise<Proposal | Refusal | undefined> {
    const { mining } = this.#options;
    const known = await this.#proposedBefore(habit);
    if (known && !hasGrown(habit, known)) return undefined;
    const drafted = await habit.draft();
    const plain = drafted && this.#withoutPersonalData(drafted);
    if (!plain || (habit.kind === 'automation' && plain.artifact !== drafted.artifact)) return undefined;
    const worded = this.#withoutPersonalData(await this.#word(habit, plain));
    let outcome = await this.#draft(habit, worded, known);
    // What a model wrote must not keep a valid draft from being proposed.
    if (isInvalid(outcome) && worded !== plain) outcome = await this.#draft(habit, plain, known);
    if (isInvalid(outcome)) {
      const { log } = mining.runtime;
      log.warn({ kind: habit.kind, reason: outcome.message }, 'skipped a habit: its artifact is not valid');
    }
    return outcome;
  }

  /**
   * The draft with placeholders for personal data, except for what is in the artifact that it revises. An automation
   * with placeholders would start runs with them, so none is proposed.
   */
  #withoutPersonalData<T extends Draft>(draft: T): T {
    const { artifact, title, rationale, excerpts, revises, preview } = draft;
    const known = revises === undefined ? '' : JSON.stringify(revises);
    const options = { ...defined({ kinds: this.#options.personalData }), known };
    const redact = (text: string): string => redactPersonalData(text, options);
    return {
      ...draft,
      artifact: redactValue(artifact, redact),
      title: redact(title),
      rationale: redact(rationale),
      ...(excerpts ? { excerpts: new Map([...excerpts].map(([id, text]) => [id, redact(text)])) } : {}),
      ...(preview ? { preview: async (final: JsonObject) => redactValue(await preview(final), redact) } : {}),
    };
  }

  async #proposedBefore({ key }: Habit): Promise<HabitRow | undefined> {
    const { subject, runtime } = this.#options.mining;
    const [known] = await runtime.store.read<HabitRow>(findHabit(ownerOf(subject), sha256Hex(key)));
    return known;
  }

  async #word(habit: Habit, plain: Draft): Promise<WordedDraft> {
    const { writer, mining } = this.#options;
    if (!writer || this.#wordedCount === WORDED_MAX) return plain;
    this.#wordedCount++;
    return wordDraft(writer, habit, plain, mining.subject.tenant);
  }

  /** Stores a draft, and that its habit was proposed, in one change. */
  async #draft(habit: Habit, draft: WordedDraft, known: HabitRow | undefined): Promise<Proposal | Refusal> {
    const { mining, proposals, neighbours } = this.#options;
    const { runtime, subject } = mining;
    const { kind, key, support, evidence } = habit;
    const through = evidence[0]!.id;
    const proposed = await this.#proposalOf(habit, draft);
    const outcome = await perform(runtime, async () => {
      const drafted = await proposals.draft(subject, proposed);
      if (isRefusal(drafted)) return drafted;
      const recorded = recordHabit(ownerOf(subject), sha256Hex(key), { support, through }, known);
      return and(drafted, changeOf(undefined, [recorded]));
    });
    if (!isRefusal(outcome)) await neighbours.add(kind, outcome.id, draft.artifact);
    return outcome;
  }

  async #proposalOf({ kind, key, support, evidence }: Habit, draft: WordedDraft): Promise<ProposalDraft> {
    const { artifact, title, rationale, synthesizerModel, revises } = draft;
    const { nearest, duplicateOf } = await this.#options.neighbours.nearTo(kind, artifact, revises);
    return {
      kind,
      artifact,
      title: title.slice(0, TITLE_CHARS_MAX),
      rationale: rationale.slice(0, RATIONALE_CHARS_MAX),
      sourceRunIds: [...new Set(evidence.map(({ runId }) => runId))],
      synthesizerModel,
      duplicateOf,
      evidence: {
        key: sha256Hex(JSON.stringify([sha256Hex(key), support, evidence[0]!.id])),
        sources: sourcesOf(evidence, draft),
        nearest,
        preview: await draft.preview?.(artifact),
      },
    };
  }
}

/** Whether the artifact of a draft was refused. */
function isInvalid(outcome: Proposal | Refusal): outcome is Refusal {
  return isRefusal(outcome) && outcome !== KNOWN_EVIDENCE && outcome !== TOO_MANY_PENDING;
}

/** A habit is proposed again once there is as much new evidence as there was for the first proposal. */
function hasGrown({ evidence }: Habit, { through, support }: HabitRow): boolean {
  return evidence.filter(({ id }) => id > through).length >= Math.min(support, EVIDENCE_MAX);
}

function sourcesOf(evidence: readonly Evidence[], { excerpts }: Draft): ProposalEvidence['sources'] {
  return evidence.map(({ id, runId, why }) => {
    const excerpt = excerpts?.get(id);
    return { runId, why: why.slice(0, WHY_CHARS_MAX), ...(excerpt === undefined ? {} : { excerpt }) };
  });
}
