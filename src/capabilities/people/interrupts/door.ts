import type { Resolver } from '../../../engine/people/question.ts';
import type { Decision } from '../../../engine/run/commands.ts';
import type { Run } from '../../../engine/run/run.ts';
import type { Refusal } from '../../../protocol/errors.ts';
import type { ManagementWorkflow } from '../../../protocol/running/management.ts';
import type { Change } from '../../../runtime/change.ts';
import type { MovedRun } from '../../../runtime/move-run.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Visibility } from '../../../store/log.ts';
import { door, extensionPoint } from '../../capability.ts';
import type { InterruptService } from './service.ts';

export type Interrupts = InterruptService;
export const Interrupts = door<Interrupts>()('interrupts');

/** An answer to an interrupt of a management run. */
export interface ManagementAnswer {
  readonly from: Visibility;
  readonly runId: string;
  readonly value: unknown;
  readonly by: Resolver;
  /** Absent where a token is the only credential. */
  readonly subject?: Subject | undefined;
  /** What the answer does to the run by the rules of the interrupt itself. */
  readonly decide: (run: Run) => Decision;
}

/** Decides what an answer to an interrupt of its management workflow changes, beyond the run itself. */
export interface AnswerDecider {
  readonly workflowId: ManagementWorkflow;
  decide(answer: ManagementAnswer): Promise<Change<MovedRun> | Refusal>;
}

/** Where capabilities with management runs take part in answers to their interrupts. */
export const AnswerDeciders = extensionPoint<AnswerDecider>('interrupts.answer-deciders');
