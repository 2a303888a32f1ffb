import type { Client } from '../client/index.ts';
import type { Context } from './command.ts';
import { EXIT, type ExitCode, UsageError } from './exit.ts';
import type { InterruptRequest } from './interrupt-answers.ts';

/** An interrupt that a node is waiting on. */
export interface OpenInterrupt extends InterruptRequest {
  readonly nodeId: string;
  readonly interruptToken?: string;
}

/** A run and one of its nodes. */
interface Place {
  readonly runId: string;
  readonly nodeId: string | undefined;
}

/** Finds what an id stands for: a run, an interrupt or gate as the inbox lists it, or the proposal of an open gate. */
export async function placeOf(client: Client, id: string, nodeId: string | undefined): Promise<Place> {
  if (id.startsWith('run-')) return { runId: id, nodeId };
  for await (const item of client.each('listInbox')) {
    const isMeant = item.id === id || (item.kind === 'gate' && item.proposalId === id);
    if (isMeant && item.runId !== undefined && item.kind !== 'proposal')
      return { runId: item.runId, nodeId: item.nodeId };
  }
  return { runId: id, nodeId };
}

/** Finds the open interrupt of a node, or the first one of the run when no node is given. */
export async function findOpenInterrupt(
  client: Client,
  runId: string,
  nodeId: string | undefined,
): Promise<OpenInterrupt> {
  const { interrupt, status } = await client.getRun(runId);
  if (interrupt && (nodeId ?? interrupt.nodeId) === interrupt.nodeId) return interrupt;
  const found = nodeId === undefined ? undefined : await findInterruptInLog(client, runId, nodeId);
  if (found) return found;
  const where = nodeId === undefined ? '' : ` at ${nodeId}`;
  throw new UsageError(
    `${runId} has no open interrupt${where}; its status is ${status}. \`capstan approvals list\` shows the open ones.`,
  );
}

/**
 * Reads the event log, because a run snapshot shows only one of several open interrupts, and none while
 * another node is at work.
 */
async function findInterruptInLog(client: Client, runId: string, nodeId: string): Promise<OpenInterrupt | undefined> {
  let open: OpenInterrupt | undefined;
  let lastSequence = -1;
  for (;;) {
    const query = { timeout: 1, ...(lastSequence < 0 ? {} : { lastSequence }) };
    const { events, isComplete } = await client.pollRunEvents(runId, query);
    for (const event of events) {
      if (event.nodeId !== nodeId) continue;
      if (event.type === 'interrupt.requested') open = { ...(event.payload as InterruptRequest), nodeId };
      if (event.type === 'interrupt.resolved') open = undefined;
    }
    if (events.length === 0 || isComplete) return open;
    lastSequence = events.at(-1)!.sequence;
  }
}

/** Sends an answer. An interrupt that stays open needs more votes; then the exit code is `waiting`. */
export async function submitAnswer(
  context: Context,
  client: Client,
  runId: string,
  nodeId: string,
  resumeValue: unknown,
  exitWhenResolved: ExitCode,
): Promise<ExitCode> {
  const reply = await client.resolveInterruptByRun(runId, nodeId, { resumeValue });
  const isOpen = (await client.getRun(runId)).nodeStates?.[nodeId]?.status === 'suspended';
  context.show(reply, () => [
    isOpen
      ? `Vote counted. ${nodeId} of ${runId} needs more votes.`
      : `Answered ${nodeId} of ${runId}. Run status: ${reply.status}.`,
  ]);
  return isOpen ? EXIT.waiting : exitWhenResolved;
}
