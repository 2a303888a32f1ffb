import type { Client } from '../client/index.ts';
import type { Asked } from './answers.ts';
import type { Context } from './command.ts';
import { EXIT, type ExitCode, UsageError } from './exit.ts';

/** What a node asks, while it waits for the answer. */
export interface Question extends Asked {
  readonly nodeId: string;
  readonly interruptToken?: string;
}

/** The question that is open at a node, or the first one of the run. */
export async function openQuestion(client: Client, runId: string, nodeId: string | undefined): Promise<Question> {
  const { interrupt, status } = await client.getRun(runId);
  if (interrupt && (nodeId ?? interrupt.nodeId) === interrupt.nodeId) return interrupt;
  const found = interrupt && nodeId !== undefined ? await questionInLog(client, runId, nodeId) : undefined;
  if (found) return found;
  const where = nodeId === undefined ? '' : ` at ${nodeId}`;
  throw new UsageError(
    `${runId} asks nobody anything${where}; it is ${status}. \`capstan approvals list\` shows who does.`,
  );
}

/** A snapshot shows one question. Where several are open, the others are in the log. */
async function questionInLog(client: Client, runId: string, nodeId: string): Promise<Question | undefined> {
  let open: Question | undefined;
  let lastSequence = -1;
  for (;;) {
    const query = { timeout: 1, ...(lastSequence < 0 ? {} : { lastSequence }) };
    const { events, isComplete } = await client.pollRunEvents(runId, query);
    for (const event of events) {
      if (event.nodeId !== nodeId) continue;
      if (event.type === 'interrupt.requested') open = { ...(event.payload as Asked), nodeId };
      if (event.type === 'interrupt.resolved') open = undefined;
    }
    if (events.length === 0 || isComplete) return open;
    lastSequence = events.at(-1)!.sequence;
  }
}

/** Gives the answer. A question that stays open wants more people; the exit code says so. */
export async function settle(
  context: Context,
  client: Client,
  runId: string,
  nodeId: string,
  resumeValue: unknown,
  decided: ExitCode,
): Promise<ExitCode> {
  const reply = await client.resolveInterruptByRun(runId, nodeId, { resumeValue });
  const isOpen = reply.status.startsWith('waiting-') && (await client.getRun(runId)).interrupt?.nodeId === nodeId;
  context.show(reply, () => [
    isOpen
      ? `Counted. ${nodeId} of ${runId} waits for others.`
      : `${nodeId} of ${runId} is answered; the run is ${reply.status}.`,
  ]);
  return isOpen ? EXIT.waiting : decided;
}
