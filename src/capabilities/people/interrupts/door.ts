import type { Resolver } from '../../../engine/people/question.ts';
import type { Decision } from '../../../engine/run/decision.ts';
import type { Run } from '../../../engine/run/run.ts';
import type { Refusal } from '../../../protocol/errors.ts';
import type { InterruptView } from '../../../protocol/people/interrupts.ts';
import type { ManagementWorkflow } from '../../../protocol/running/management.ts';
import type { Change } from '../../../runtime/change.ts';
import type { MovedRun } from '../../../runtime/move-run.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { RunRef, Visibility } from '../../../store/log.ts';
import { door, extensionPoint } from '../../capability.ts';
import type { Caller } from '../../request.ts';
import type { InboxEntry } from '../inbox/door.ts';

export { ApprovalConfig, approvalGate, decided } from './nodes.ts';

export { resolverOf } from './rules.ts';

/** Questions that nodes ask, and their answers. */
export interface Interrupts {
  /** Answers the open interrupt of a node as the caller. */
  resolve(caller: Caller, runId: string, nodeId: string, value: unknown): Promise<Change<MovedRun> | Refusal>;
  /** The open interrupt that a token names. */
  inspect(token: string): Promise<InterruptView | Refusal>;
  /** A new token for the open interrupt of a node, for whoever the run reports to; undefined if there is none. */
  tokenOf(run: RunRef, nodeId: string): Promise<string | undefined>;
  /** A new token for an open interrupt, or undefined if the caller may not answer it. It ends with the interrupt at the latest. */
  mint(caller: Caller, runId: string, interrupt: NamedInterrupt): Promise<string | undefined>;
  /** How many interrupts wait for an answer, for the host's metrics. */
  waiting(): Promise<WaitingInterrupts>;
}

/** The interrupts of all tenants that wait for an answer. */
export interface WaitingInterrupts {
  /** 10,000 at most. */
  readonly count: number;
  /** How long the oldest of them has waited; 0 if there is none. */
  readonly oldestMs: number;
}

/** The door to interrupts. */
export const Interrupts = door<Interrupts>()('interrupts');

/** The part of an open interrupt that a token names. */
export interface NamedInterrupt {
  readonly nodeId: string;
  readonly interruptId: string;
  readonly expiresAt?: string;
}

/** An answer to an interrupt of a management run. */
export interface ManagementAnswer {
  readonly from: Visibility;
  readonly runId: string;
  readonly value: unknown;
  readonly by: Resolver;
  /** Absent where a token is the only credential. */
  readonly subject?: Subject | undefined;
  /** What the answer does to the run by the rules of the interrupt itself. */
  readonly decide: (run: Run) => Decision | Promise<Decision>;
}

/** Decides what an answer to an interrupt of its management workflow changes, beyond the run itself. */
export interface AnswerDecider {
  readonly workflowId: ManagementWorkflow;
  decide(answer: ManagementAnswer): Promise<Change<MovedRun> | Refusal>;
}

/** Where capabilities with management runs take part in answers to their interrupts. */
export const AnswerDeciders = extensionPoint<AnswerDecider>('interrupts.answer-deciders');

/** Where the interrupts of some runs are answered in the console, by run id; a run that is not in the map has no place of its own. */
export type InterruptLinks = (
  from: Visibility,
  runIds: readonly string[],
) => Promise<ReadonlyMap<string, Pick<InboxEntry, 'link' | 'proposalId'>>>;

/** Where capabilities with management runs say where their interrupts are answered in the console. */
export const InterruptLinks = extensionPoint<InterruptLinks>('interrupts.links');
