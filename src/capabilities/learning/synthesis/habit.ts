import type { JsonObject } from '../../../protocol/format/json.ts';
import type { ArtifactKind } from '../../../protocol/learning/proposals.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Packs } from '../../ai/packs/door.ts';
import type { Prompts } from '../../ai/prompts/door.ts';
import type { Feedback } from '../../people/feedback/door.ts';
import type { Among } from './counts.ts';
import type { RhythmRules } from './rhythm.ts';

/** One thing that was seen: the run, and what it shows. Ids sort by time. */
export interface Evidence {
  readonly id: string;
  readonly runId: string;
  readonly why: string;
}

/** Something that people, or their runs, do again and again. */
export interface Habit {
  readonly kind: ArtifactKind;
  /** What it consists in: the same for the same habit, however much is behind it. */
  readonly key: string;
  /** How often it was seen. */
  readonly support: number;
  /** The latest of it, newest first. */
  readonly evidence: readonly Evidence[];
  /** What could be made of it; nothing where that would help nobody. */
  draft(): Promise<Draft | undefined>;
}

/** What could be made of a habit, as somebody without words of their own puts it. */
export interface Draft {
  readonly artifact: JsonObject;
  readonly title: string;
  readonly rationale: string;
  /** What people wrote, by the evidence that it is. */
  readonly excerpts?: ReadonlyMap<string, string>;
  /** What it is a new version of, which is no duplicate. */
  readonly revises?: JsonObject | undefined;
  /** What would change with the artifact as it is in the end, unless that itself tells. */
  preview?(artifact: JsonObject): Promise<JsonObject>;
}

/** What those who look for habits may look at. */
export interface Mining {
  readonly runtime: Runtime;
  readonly subject: Subject;
  readonly among: Among;
  readonly rules: RhythmRules;
  readonly prompts: Pick<Prompts, 'find' | 'versions'>;
  readonly packs: Pick<Packs, 'current' | 'versions' | 'agent'>;
  readonly feedback: Pick<Feedback, 'pages'> | undefined;
}

/** Pieces of evidence that are looked at, and named, of one habit. */
export const EVIDENCE_MAX = 100;
/** Habits of one kind that are looked at in one go. */
export const HABITS_MAX = 500;
const NAMED_MAX = 5;

/** A few of them by name, for people. */
export function named(values: Iterable<string>): string {
  const distinct = [...new Set(values)];
  const more = distinct.length - NAMED_MAX;
  return distinct.slice(0, NAMED_MAX).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

export function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`;
}
