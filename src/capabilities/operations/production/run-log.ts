import { isTerminal, statusOf } from '../../../engine/run/run.ts';
import type { RunEvent } from '../../../protocol/running/events.ts';
import type { AppendListener } from '../../../runtime/hub.ts';
import type { Append } from '../../../runtime/reaction.ts';
import type { Log } from '../../../system/log.ts';

/** Logs how every run ended. Messages of errors may quote what callers sent, so operators get the code alone. */
export function endLog(log: Log): AppendListener {
  return ({ run, identity }) => {
    if (!isTerminal(run)) return;
    const { runId, workflowId } = run.facts;
    const { tenant } = identity.subject;
    log.info({ runId, tenant, workflowId, status: statusOf(run), errorCode: run.error?.code }, 'run ended');
  };
}

/** Logs what somebody wants to see who develops workflows: starts, what nodes log, what fails and why. */
export function developerLog(log: Log): AppendListener {
  return (append) => {
    for (const event of append.events) {
      const line = lineOf(event, append);
      if (line) log[line.level]({ runId: append.run.facts.runId }, line.text);
    }
  };
}

interface Line {
  readonly level: 'info' | 'warn';
  readonly text: string;
}

const info = (text: string): Line => ({ level: 'info', text });
const warn = (text: string): Line => ({ level: 'warn', text });

function lineOf(event: RunEvent, { run }: Append): Line | undefined {
  const { workflowId } = run.facts;
  switch (event.type) {
    case 'run.started':
      return info(`${workflowId}: started`);
    case 'node.retried': {
      const { nodeId, lastError, delayMs } = event.payload;
      return warn(`${workflowId}: ${nodeId} is tried again in ${delayMs} ms: ${lastError?.message}`);
    }
    case 'node.failed':
      return warn(`${workflowId}: ${event.payload.nodeId} failed: ${event.payload.error.message}`);
    case 'interrupt.requested':
      return info(`${workflowId}: ${event.nodeId} waits for an answer`);
    case 'log.appended': {
      const { level, message, nodeId } = event.payload;
      const text = `${workflowId}: ${nodeId === undefined ? '' : `${nodeId}: `}${message}`;
      return level === 'info' ? info(text) : warn(text);
    }
    case 'run.failed':
      return warn(`${workflowId}: failed: ${event.payload.error.message}`);
    case 'run.completed':
    case 'run.cancelled':
      return info(`${workflowId}: ${run.ended}`);
    default:
      return undefined;
  }
}
