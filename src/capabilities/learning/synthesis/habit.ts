import type { JsonObject } from '../../../protocol/format/json.ts';
import type { ArtifactKind } from '../../../protocol/learning/proposals.ts';
import type { HeldBackReason } from '../../../protocol/learning/synthesis.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Packs } from '../../ai/packs/door.ts';
import type { Prompts } from '../../ai/prompts/door.ts';
import type { Feedback } from '../../people/feedback/door.ts';
import type { Goals } from '../goals/door.ts';
import type { Verifiers } from '../verifiers/door.ts';
import type { RunSelection } from './mining-records.ts';
import type { Outcomes } from './outcomes.ts';
import type { RhythmRules } from './rhythm.ts';

/** One observation of a habit: the run, and what it shows. Ids sort by time. */
export interface Evidence {
  readonly id: string;
  readonly runId: string;
  readonly why: string;
}

/** Something that people or their runs do repeatedly. */
export interface Habit {
  readonly kind: ArtifactKind;
  /** Identifies the habit, however much evidence there is. */
  readonly key: string;
  /** Names it for people. */
  readonly what: string;
  /** How often it was observed. */
  readonly support: number;
  /** The latest observations, newest first. */
  readonly evidence: readonly Evidence[];
  /** The proposal that would automate it, or why there is none. */
  draft(): Promise<Draft | HeldBackDraft>;
}

/** The reason why a habit is held back instead of drafted. */
export interface HeldBackDraft {
  readonly reason: HeldBackReason;
  readonly message: string;
}

/** A habit that was observed and is not proposed. */
export interface HeldBackHabit extends HeldBackDraft, Pick<Habit, 'kind' | 'what'> {
  readonly proposalId?: string;
  readonly ref?: string;
}

/** What a miner finds. */
export type Found = Habit | HeldBackHabit;

/** Whether something that was found is held back. */
export function isHeldBack(found: Found): found is HeldBackHabit {
  return 'reason' in found;
}

/** Whether there is a reason to hold the habit back instead of a draft. */
export function isHeldBackDraft(drafted: Draft | HeldBackDraft): drafted is HeldBackDraft {
  return 'reason' in drafted;
}

/** A habit that was not observed often enough. */
export function needsMore(
  of: Pick<Habit, 'kind' | 'what'>,
  seen: number,
  needed: number,
  thing: string,
): HeldBackHabit {
  return {
    ...of,
    reason: 'needs-more',
    message: `needs ${needed - seen} more ${thing}${needed - seen === 1 ? '' : 's'}`,
  };
}

/** A proposal made from a habit, worded by templates. */
export interface Draft {
  readonly artifact: JsonObject;
  readonly title: string;
  readonly rationale: string;
  /** What people wrote, by the id of the evidence. */
  readonly excerpts?: ReadonlyMap<string, string>;
  /** The artifact that it is a new version of, which does not count as a duplicate. */
  readonly revises?: JsonObject | undefined;
  /** The effect that the final artifact would have, where the installer cannot tell. */
  preview?(artifact: JsonObject): Promise<JsonObject>;
}

/** What miners read from. */
export interface MiningContext {
  readonly runtime: Runtime;
  readonly subject: Subject;
  readonly selection: RunSelection;
  readonly rules: RhythmRules;
  readonly prompts: Pick<Prompts, 'find' | 'versions'>;
  readonly packs: Pick<Packs, 'current' | 'versions' | 'agent'>;
  readonly feedback: Pick<Feedback, 'pages'> | undefined;
  readonly outcomes: Outcomes;
  readonly verifiers: Pick<Verifiers, 'get'>;
  /** Verdicts on goals, and what people think of them; undefined where there are no goals. */
  readonly verdicts: Pick<Goals['agreement'], 'latest'> | undefined;
  /** What a proposed schedule may cost for models in a month. */
  readonly monthlyUsdMax: number | undefined;
  /** Replaces personal data; a text without any stays the same. */
  readonly redact: (text: string) => string;
}

/** Observations of one habit that are read and listed. */
export const EVIDENCE_MAX = 100;
/** Observations from which something counts as the beginning of a habit, so that people are told what is missing. */
export const BEGINNING_MIN = 2;
/** Habits of one kind that one scan considers. */
export const HABITS_MAX = 500;
