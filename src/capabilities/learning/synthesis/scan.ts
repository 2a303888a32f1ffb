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
  type ProposalOutcome,
  type Proposals,
  TOO_MANY_PENDING,
} from '../proposals/door.ts';
import { findAutomations } from './automations.ts';
import { findChains } from './chains.ts';
import { findCorrectedPrompts } from './corrected-prompts.ts';
import { findDisputedJudges } from './disputed-judges.ts';
import { findFailedCriteria } from './failed-criteria.ts';
import {
  type Draft,
  EVIDENCE_MAX,
  type Evidence,
  type Found,
  type Habit,
  type HeldBackHabit,
  isHeldBack,
  isHeldBackDraft,
  type MiningContext,
} from './habit.ts';
import type { Neighbours } from './neighbours.ts';
import { inSentence } from './outcomes.ts';
import { counted } from './phrases.ts';
import { findHabit, type HabitRow, recordHabit } from './records.ts';
import { findToolUsers } from './tool-users.ts';
import { type WordedDraft, type Writer, wordDraft } from './wording.ts';

type Miner = (mining: MiningContext) => AsyncGenerator<Found>;

const MINERS: Record<ArtifactKind, readonly Miner[]> = {
  'prompt-template': [findCorrectedPrompts, findFailedCriteria, findDisputedJudges],
  'workflow-chain-pack': [findChains],
  'agent-pack': [findToolUsers],
  automation: [findAutomations],
};

/** Names of nodes may be long, so the texts that are made of them are cut. */
const TITLE_CHARS_MAX = 200;
const RATIONALE_CHARS_MAX = 4_000;
const WHY_CHARS_MAX = 500;
/** Drafts that a model words in one scan; the others keep the words of their templates. */
const WORDED_MAX = 10;
/** Habits that a reply lists as held back. */
const HELD_BACK_MAX = 100;

/** What one scan works with. */
interface ScanOptions {
  readonly mining: MiningContext;
  readonly proposals: Pick<Proposals, 'draft' | 'outcome'>;
  readonly neighbours: Neighbours;
  readonly writer: Writer | undefined;
  readonly kinds: readonly ArtifactKind[];
  readonly personalData?: readonly PersonalDataKind[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What a scan drafted. */
export interface ScanResult {
  readonly created: readonly Proposal[];
  /** What was seen and is not proposed. */
  readonly heldBack: readonly HeldBackHabit[];
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
    const heldBack: HeldBackHabit[] = [];
    for (const miner of kinds.flatMap((kind) => MINERS[kind])) {
      for await (const found of miner(mining)) {
        if (signal?.aborted) return { created, heldBack };
        const outcome = isHeldBack(found) ? found : await this.#propose(found);
        if (outcome === TOO_MANY_PENDING) return { created, heldBack, pendingLimitReached: true };
        if (isProposal(outcome)) created.push(outcome);
        else if (!isRefusal(outcome) && heldBack.length < HELD_BACK_MAX) heldBack.push(this.#shown(outcome));
      }
    }
    return { created, heldBack };
  }

  /** Proposes a habit, or says why not. The only refusal is that too many proposals wait. */
  async #propose(habit: Habit): Promise<Proposal | HeldBackHabit | Refusal> {
    const known = await this.#proposedBefore(habit);
    const earlierOutcome = known?.proposal_id ? await this.#outcomeOf(known.proposal_id) : undefined;
    const heldBack = known && heldBackAgain(habit, known, earlierOutcome);
    if (heldBack) return heldBack;
    const drafted = await habit.draft();
    if (isHeldBackDraft(drafted)) return { ...habit, ...drafted };
    const plain = this.#withoutPersonalData(drafted);
    if (habit.kind === 'automation' && plain.artifact !== drafted.artifact) {
      return { ...habit, reason: 'personal-data', message: 'the inputs contain personal data' };
    }
    const { restates: ref } = await this.#options.neighbours.nearTo(habit.kind, plain.artifact, plain.revises);
    if (ref !== undefined) return { ...habit, reason: 'restates', message: `restates ${ref}`, ref };
    return this.#draftWorded(habit, plain, known, earlierOutcome?.rejections ?? []);
  }

  /** Lets a model word the draft, and stores it. What a model wrote must not keep a valid draft from being proposed. */
  async #draftWorded(
    habit: Habit,
    plain: Draft,
    known: HabitRow | undefined,
    earlier: ProposalOutcome['rejections'],
  ): Promise<Proposal | HeldBackHabit | Refusal> {
    const worded = this.#withoutPersonalData(await this.#word(habit, plain));
    let outcome = await this.#draft(habit, worded, known, earlier);
    if (isInvalid(outcome) && worded !== plain) outcome = await this.#draft(habit, plain, known, earlier);
    if (outcome === KNOWN_EVIDENCE) return { ...habit, reason: 'proposed', message: 'was proposed on this evidence' };
    if (!isInvalid(outcome)) return outcome;
    const { log } = this.#options.mining.runtime;
    log.warn({ kind: habit.kind, reason: outcome.message }, 'skipped a habit: its artifact is not valid');
    return { ...habit, reason: 'invalid', message: outcome.message };
  }

  #outcomeOf(proposalId: string): Promise<ProposalOutcome | undefined> {
    const { mining, proposals } = this.#options;
    return proposals.outcome(mining.subject, proposalId);
  }

  /** What people are told about a habit that is held back, without personal data. */
  #shown({ kind, what, reason, message, proposalId, ref }: HeldBackHabit): HeldBackHabit {
    const { redact } = this.#options.mining;
    const told = { what: redact(what).slice(0, WHY_CHARS_MAX), message: redact(message).slice(0, WHY_CHARS_MAX) };
    return { kind, ...told, reason, ...defined({ proposalId, ref }) };
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
  async #draft(
    habit: Habit,
    draft: WordedDraft,
    known: HabitRow | undefined,
    earlier: ProposalOutcome['rejections'],
  ): Promise<Proposal | Refusal> {
    const { mining, proposals, neighbours } = this.#options;
    const { runtime, subject } = mining;
    const { kind, key, support, evidence } = habit;
    const through = evidence[0]!.id;
    const proposed = await this.#proposalOf(habit, draft, earlier);
    const outcome = await perform(runtime, async () => {
      const drafted = await proposals.draft(subject, proposed);
      if (isRefusal(drafted)) return drafted;
      const row = { support, through, proposal_id: drafted.result.id };
      const recorded = recordHabit(ownerOf(subject), sha256Hex(key), row, known);
      return and(drafted, changeOf(undefined, [recorded]));
    });
    if (!isRefusal(outcome)) await neighbours.add(kind, outcome.id, draft.artifact);
    return outcome;
  }

  async #proposalOf(
    { kind, key, support, evidence }: Habit,
    draft: WordedDraft,
    earlier: ProposalOutcome['rejections'],
  ): Promise<ProposalDraft> {
    const { artifact, title, rationale, synthesizerModel, revises } = draft;
    const sourceRunIds = [...new Set(evidence.map(({ runId }) => runId))];
    const outcomes = await this.#options.mining.outcomes.summary(sourceRunIds);
    const told = [rationale, inSentence(outcomes), ...earlier.slice(-1).map(rejectedBefore)].join(' ');
    const { nearest, duplicateOf } = await this.#options.neighbours.nearTo(kind, artifact, revises);
    return {
      kind,
      artifact,
      title: title.slice(0, TITLE_CHARS_MAX),
      rationale: told.slice(0, RATIONALE_CHARS_MAX),
      sourceRunIds,
      synthesizerModel,
      duplicateOf,
      evidence: {
        key: sha256Hex(JSON.stringify([sha256Hex(key), support, evidence[0]!.id])),
        sources: sourcesOf(evidence, draft),
        nearest,
        preview: await draft.preview?.(artifact),
        outcomes,
        ...(earlier.length === 0 ? {} : { earlier }),
      },
    };
  }
}

/** Whether the artifact of a draft was refused. */
function isInvalid(outcome: Proposal | Refusal): outcome is Refusal {
  return isRefusal(outcome) && outcome !== KNOWN_EVIDENCE && outcome !== TOO_MANY_PENDING;
}

function isProposal(outcome: Proposal | HeldBackHabit | Refusal): outcome is Proposal {
  return 'artifact' in outcome;
}

/**
 * Why a habit that was proposed before is not proposed now: it was rejected for good, or there is not yet as much new
 * evidence as there was then.
 */
function heldBackAgain(
  habit: Habit,
  { through, support, proposal_id }: HabitRow,
  earlierOutcome: ProposalOutcome | undefined,
): HeldBackHabit | undefined {
  const on = earlierOutcome?.rejectedAt === undefined ? undefined : `rejected on ${dayOf(earlierOutcome.rejectedAt)}`;
  const its = { ...habit, ...defined({ proposalId: proposal_id ?? undefined }) };
  if (earlierOutcome?.isNeverAgain) return { ...its, reason: 'never', message: `${on}, for good` };
  const missing = Math.min(support, EVIDENCE_MAX) - habit.evidence.filter(({ id }) => id > through).length;
  if (missing <= 0) return undefined;
  const more = `needs ${counted(missing, 'more observation')} to be proposed again`;
  if (on !== undefined) return { ...its, reason: 'rejected', message: `${on}; ${more}` };
  return { ...its, reason: 'proposed', message: `was proposed already; ${more}` };
}

function rejectedBefore({ at, reason }: ProposalOutcome['rejections'][number]): string {
  return `It was rejected before, on ${dayOf(at)}${reason === undefined ? '' : `: ${reason}`}.`;
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

function sourcesOf(evidence: readonly Evidence[], { excerpts }: Draft): ProposalEvidence['sources'] {
  return evidence.map(({ id, runId, why }) => {
    const excerpt = excerpts?.get(id);
    return { runId, why: why.slice(0, WHY_CHARS_MAX), ...(excerpt === undefined ? {} : { excerpt }) };
  });
}
