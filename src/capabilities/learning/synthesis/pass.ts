import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import { ARTIFACT_KINDS, type ArtifactKind, type Proposal } from '../../../protocol/learning/proposals.ts';
import { and, changeOf, perform } from '../../../runtime/change.ts';
import { ownerOf } from '../../../store/definitions.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { type Evidence as DraftEvidence, KNOWN_EVIDENCE, type Proposals, TOO_MANY_PENDING } from '../proposals/door.ts';
import { findAutomations } from './automations.ts';
import { findChains } from './chains.ts';
import { findCorrectedPrompts } from './corrected-prompts.ts';
import { type Draft, EVIDENCE_MAX, type Evidence, type Habit, type Mining } from './habit.ts';
import type { Neighbours } from './neighbours.ts';
import { findHabit, type HabitRow, keepHabit } from './records.ts';
import { findToolUsers } from './tool-users.ts';
import { type Worded, type Writer, worded } from './wording.ts';

const MINERS: Record<ArtifactKind, (mining: Mining) => AsyncGenerator<Habit>> = {
  'prompt-template': findCorrectedPrompts,
  'workflow-chain-pack': findChains,
  'agent-pack': findToolUsers,
  automation: findAutomations,
};

/** Names of nodes may be of any length; what people read is not. */
const TITLE_CHARS_MAX = 200;
const RATIONALE_CHARS_MAX = 4_000;
const WHY_CHARS_MAX = 500;
/** Drafts that a model is asked about in one go; the others keep their plain words. */
const WORDED_MAX = 10;

export interface PassOptions {
  readonly mining: Mining;
  readonly proposals: Pick<Proposals, 'draft'>;
  readonly neighbours: Neighbours;
  readonly writer: Writer | undefined;
  readonly kinds?: readonly ArtifactKind[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Refusals that say nothing about the artifact. */
const SETTLED: readonly Refusal[] = [KNOWN_EVIDENCE, TOO_MANY_PENDING];

/** One look at everything that is known of what recurs. */
export class Pass {
  readonly #options: PassOptions;
  #wordedCount = 0;

  constructor(options: PassOptions) {
    this.#options = options;
  }

  /** Drafts what is new, as long as people have room for it. */
  async run(): Promise<Proposal[]> {
    const { mining, kinds = ARTIFACT_KINDS, signal } = this.#options;
    const created: Proposal[] = [];
    for (const kind of ARTIFACT_KINDS.filter((each) => kinds.includes(each))) {
      for await (const habit of MINERS[kind](mining)) {
        if (signal?.aborted) return created;
        const outcome = await this.#propose(habit);
        if (outcome === 'too-many-pending') return created;
        if (outcome) created.push(outcome);
      }
    }
    return created;
  }

  async #propose(habit: Habit): Promise<Proposal | 'too-many-pending' | undefined> {
    const known = await this.#known(habit);
    if (known && !hasGrown(habit, known)) return undefined;
    const plain = await habit.draft();
    if (!plain) return undefined;
    const draft = await this.#word(habit, plain);
    const outcome = await this.#draft(habit, draft, known);
    // Whatever a model has written must not stand in the way of what was found without it.
    const isTurnedDown = isRefusal(outcome) && !SETTLED.includes(outcome) && draft !== plain;
    return this.#settle(habit, isTurnedDown ? await this.#draft(habit, plain, known) : outcome);
  }

  async #known({ key }: Habit): Promise<HabitRow | undefined> {
    const { subject, runtime } = this.#options.mining;
    const [known] = await runtime.store.read<HabitRow>(findHabit(ownerOf(subject), sha256Hex(key)));
    return known;
  }

  async #word(habit: Habit, plain: Draft): Promise<Worded> {
    const { writer, mining } = this.#options;
    if (!writer || this.#wordedCount === WORDED_MAX) return plain;
    this.#wordedCount++;
    return worded(writer, habit, plain, mining.subject.tenant);
  }

  /** The draft, and that it was made, in one transaction. */
  async #draft(
    { kind, key, support, evidence }: Habit,
    draft: Worded,
    known: HabitRow | undefined,
  ): Promise<Proposal | Refusal> {
    const { mining, proposals, neighbours } = this.#options;
    const { artifact, title, rationale, synthesizerModel, revises } = draft;
    const { nearest, duplicateOf } = await neighbours.nearTo(kind, artifact, revises);
    const habit = sha256Hex(key);
    const through = evidence[0]!.id;
    const proposed = {
      kind,
      artifact,
      title: title.slice(0, TITLE_CHARS_MAX),
      rationale: rationale.slice(0, RATIONALE_CHARS_MAX),
      sourceRunIds: [...new Set(evidence.map(({ runId }) => runId))],
      synthesizerModel,
      duplicateOf,
      evidence: {
        key: sha256Hex(JSON.stringify([habit, support, through])),
        sources: sourcesOf(evidence, draft),
        nearest,
        preview: await draft.preview?.(artifact),
      },
    };
    const outcome = await perform(mining.runtime, async () => {
      const drafted = await proposals.draft(mining.subject, proposed);
      if (isRefusal(drafted)) return drafted;
      return and(
        drafted,
        changeOf(undefined, [keepHabit(ownerOf(mining.subject), habit, { support, through }, known)]),
      );
    });
    if (!isRefusal(outcome)) await neighbours.add(kind, outcome.id, artifact);
    return outcome;
  }

  #settle({ kind }: Habit, outcome: Proposal | Refusal): Proposal | 'too-many-pending' | undefined {
    if (!isRefusal(outcome)) return outcome;
    if (outcome === TOO_MANY_PENDING) return 'too-many-pending';
    if (outcome === KNOWN_EVIDENCE) return undefined;
    const { log } = this.#options.mining.runtime;
    log.warn({ kind, reason: outcome.message }, 'what recurs does not make a valid artifact; it is left alone');
    return undefined;
  }
}

/** What was drafted before is worth another look once there is as much new evidence as there was then. */
function hasGrown({ evidence }: Habit, { through, support }: HabitRow): boolean {
  return evidence.filter(({ id }) => id > through).length >= Math.min(support, EVIDENCE_MAX);
}

function sourcesOf(evidence: readonly Evidence[], { excerpts }: Draft): DraftEvidence['sources'] {
  return evidence.map(({ id, runId, why }) => {
    const excerpt = excerpts?.get(id);
    return { runId, why: why.slice(0, WHY_CHARS_MAX), ...(excerpt === undefined ? {} : { excerpt }) };
  });
}
