import type { InterruptRequest } from '../../../engine/people/interrupts.ts';
import { questionOf } from '../../../engine/people/questions.ts';
import { isOver } from '../../../engine/run/run.ts';
import { isObject } from '../../../protocol/format/json.ts';
import type { WaitsFor, WorkerChild } from '../../../protocol/running/workers.ts';
import type { NodeContext, Outcome } from '../../../runtime/node-type.ts';
import type { TaskBody } from './document.ts';

/** What the run waits for, or the next call of the code once that is there. */
type NextCall = Outcome | { readonly body: TaskBody };

/** Decides whether what an attempt waits for is there. Asked again, it gives the same answer until it is. */
export async function nextCall(context: NodeContext, before: TaskBody, waitsFor: WaitsFor): Promise<NextCall> {
  const { until, child } = waitsFor;
  if (until !== undefined) {
    const time = Date.parse(until);
    return context.now() < time ? { sleepUntil: time } : { body: { ...before, waitedUntil: until } };
  }
  if (child) return afterChild(context, before, child);
  const { answers } = context;
  const known = before.answers?.length ?? 0;
  return answers.length > known ? { body: { ...before, answers } } : { interrupt: interruptOf(waitsFor) };
}

function interruptOf({ answer, event }: WaitsFor): InterruptRequest {
  if (answer) return questionOf(answer);
  const { eventType, correlation, timeoutMs } = event!;
  return { kind: 'external-event', data: { eventType, correlation }, timeoutMs };
}

async function afterChild(
  context: NodeContext,
  before: TaskBody,
  { workflowId, inputs = {} }: NonNullable<WaitsFor['child']>,
): Promise<NextCall> {
  const known = before.children ?? [];
  const child = context.children[known.length];
  if (!child) {
    if (!names(context.config, workflowId)) return { failed: notNamed(workflowId) };
    return { children: [{ workflowId, variables: inputs }] };
  }
  if (!isOver(child)) return { children: [] };
  const { runId, status, variables, outputs = {}, error } = await context.childResult(child.runId);
  const ended: WorkerChild = { runId, status, variables, outputs: { ...outputs }, ...(error ? { error } : {}) };
  return { body: { ...before, children: [...known, ended] } };
}

/** Whether a text is somewhere in the config: the author of the workflow, and not the worker, decides what is started. */
function names(config: unknown, text: string): boolean {
  if (Array.isArray(config)) return config.some((each) => names(each, text));
  return isObject(config) ? Object.values(config).some((each) => names(each, text)) : config === text;
}

function notNamed(workflowId: string) {
  const message = `The worker asks for a run of ${workflowId}, which the config of the node does not name.`;
  return { code: 'forbidden', message, retryable: false };
}
