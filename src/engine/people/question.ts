import type { NewEvent } from '../../protocol/running/events.ts';
import type { OpenInterrupt, Run } from '../run/run.ts';

/** Who answers. What they may do comes from their credential, never from what they say. */
export interface Resolver {
  readonly principal: string;
  /** A program that votes for several people and says for whom. Everybody else votes as themselves. */
  readonly mayNameVoters: boolean;
  hasScope(scope: string): boolean;
  /** By this role or a higher one. */
  hasRole(role: string): boolean;
}

/** What is being answered. */
export interface Question {
  readonly run: Run;
  readonly nodeId: string;
  readonly interrupt: OpenInterrupt;
}

/** The question is closed, and the node goes on with what it was told. */
export function settle({ nodeId, interrupt }: Question, resumeValue: unknown, resolvedBy: string): NewEvent[] {
  const { interruptId, kind } = interrupt;
  return [
    { type: 'interrupt.resolved', nodeId, payload: { nodeId, interruptId, kind, resumeValue, resolvedBy } },
    { type: 'node.resumed', nodeId, payload: { nodeId, interruptId, resumeValue } },
  ];
}
