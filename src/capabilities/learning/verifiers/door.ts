import type { Refusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type {
  Criterion,
  Evidence,
  Verifier,
  VerifierRequest,
  VerifierSpec,
} from '../../../protocol/learning/verifiers.ts';
import type { Annotation } from '../../../protocol/people/annotations.ts';
import type { RunSnapshot } from '../../../protocol/running/runs.ts';
import type { Change } from '../../../runtime/change.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Visibility } from '../../../store/log.ts';
import { door } from '../../capability.ts';
import type { Caller } from '../../request.ts';

/** Named verifiers, and judging runs by them. */
export interface Verifiers {
  /** By `id` the current version, by `id@version` that one. */
  get(caller: Pick<Caller, 'subject'>, verifierRef: string): Promise<Verifier | Refusal>;
  list(caller: Caller, after: VerifierPlace, limit: number): Promise<ListedVerifier[]>;
  /** The current version that the caller's workspace, or tenant, itself has; undefined if it has none or inherits one. */
  ownVersion(caller: Pick<Caller, 'subject'>, verifierId: string): Promise<number | undefined>;
  /** Stores a verifier; an id that exists gets a new version. */
  put(caller: Pick<Caller, 'subject'>, request: VerifierRequest): Promise<Change<Verifier> | Refusal>;
  /** Takes a version out of use, if it is in use: the one that it replaced is used again. */
  withdraw(caller: Pick<Caller, 'subject'>, verifierId: string, replacement: Replacement): Promise<Change>;
  /** Verdicts that name the verifier stay valid; nothing more is judged by it. */
  remove(caller: Caller, verifierId: string): Promise<Change | Refusal>;
  /** Judges a run. Whatever goes wrong, the answer is never `satisfied`. */
  judge(subject: Subject, request: JudgeRequest): Promise<Judgement>;
  /** Judges a run by a specification. Nothing is recorded but what it cost. */
  tryJudging(by: Visibility, request: TrialRequest): Promise<Trial>;
  /** What a judge sees of a run; undefined if the run has expired. */
  judgedRun(from: Visibility, runId: string): Promise<JudgedRun | undefined>;
}

/** The door to verifiers. */
export const Verifiers = door<Verifiers>()('verifiers');

/** A version of a verifier, and the version of the same owner that it replaced, if there was one. */
export interface Replacement {
  readonly version: number;
  readonly replaced?: number | undefined;
}

/** A verifier in a list, and since when its version is the current one: a version that is used again is an old one. */
export interface ListedVerifier {
  readonly verifier: Verifier;
  readonly updatedAt: number;
}

/** Where a page of verifiers ended. */
export interface VerifierPlace {
  readonly updatedAt: number;
  readonly verifierId: string;
}

/** A run that has ended, as judges see it. */
export interface JudgedRun {
  /** With sensitive values masked, as readers see it. */
  readonly snapshot: RunSnapshot;
  /** Node id to outputs, and variables, unmasked. They never leave the host. */
  readonly outputs: JsonObject;
  readonly variables: JsonObject;
  readonly annotations: readonly Annotation[];
}

/** A request to judge a run against the objective of a goal. */
export interface JudgeRequest {
  readonly check: 'verifier' | 'host';
  /** `id`, or `id@version`. */
  readonly verifierRef?: string | null | undefined;
  /** The criteria that the host judges by, if it is the judge. */
  readonly criteria?: readonly Criterion[] | undefined;
  readonly goalId: string;
  readonly objective: string;
  readonly objectiveVersion: number;
  readonly run: JudgedRun;
  /** What judging may cost. */
  readonly maxCostUsd?: number | undefined;
  /** The work item to wake once a judging run has ended. */
  readonly wakes: string;
  /** The judging run that an earlier answer named. */
  readonly pending?: { readonly runId: string } | undefined;
}

/** A request to judge a run only to see what would come of it. */
export interface TrialRequest {
  readonly spec: VerifierSpec;
  readonly objective: string;
  readonly run: JudgedRun;
  readonly maxCostUsd: number;
  readonly signal: AbortSignal;
}

/** What came of a trial; without `satisfied` the judge could not decide. */
export interface Trial {
  readonly satisfied?: boolean;
  readonly costUsd: number;
  /** The call was not made because it could cost more than is left. */
  readonly overBudget?: true;
}

/** What a judge decided. */
export interface Verdict {
  readonly satisfied: boolean;
  readonly confidence?: number;
  /** Who judged: `id@version`, or the host by criteria or by a model. */
  readonly judge: string;
  readonly evidence: readonly Evidence[];
  readonly costUsd?: number;
}

/** The judge could not decide: neither satisfied nor unsatisfied. */
export interface Undecided {
  readonly undecided: true;
  readonly reason: string;
  readonly judge?: string;
  readonly costUsd?: number;
}

/** A judging run gives the verdict. It starts with this change; once it has ended, `judge` is called again. */
export interface Pending {
  readonly pending: { readonly runId: string; readonly change: Change<unknown> };
}

/** What `judge` answers. */
export type Judgement = Verdict | Undecided | Pending;
