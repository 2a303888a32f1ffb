import type { NewEvent } from '../../protocol/running/events.ts';
import type { OpenInterrupt, Run } from '../run/run.ts';

/** The principal that answers an interrupt. Its permissions come from the credential, never from the request body. */
export interface Resolver {
  readonly principal: string;
  /** The person that the key names; several keys of one person count as one. */
  readonly person?: string | undefined;
  /** Whether it is a program that may vote on behalf of people it names; everybody else votes as themselves. */
  readonly mayNameVoters: boolean;
  hasScope(scope: string): boolean;
  /** Whether the principal has this role or a higher one. */
  hasRole(role: string): boolean;
  /** Whether the principal is in a group, by the name that its identity provider gives the group. */
  hasGroup(group: string): boolean;
}

/** An open interrupt, with the run and node that raised it. */
export interface Question {
  readonly run: Run;
  readonly nodeId: string;
  readonly interrupt: OpenInterrupt;
  /** When the answer is given. */
  readonly now: number;
}

/** The events that close an interrupt and resume its node with the answer. */
export function settle({ nodeId, interrupt }: Question, resumeValue: unknown, resolvedBy: string): NewEvent[] {
  const { interruptId, kind } = interrupt;
  return [
    { type: 'interrupt.resolved', nodeId, payload: { nodeId, interruptId, kind, resumeValue, resolvedBy } },
    { type: 'node.resumed', nodeId, payload: { nodeId, interruptId, resumeValue } },
  ];
}
