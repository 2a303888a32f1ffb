import type { JsonObject } from '../../src/protocol/format/json.ts';
import type { WorkflowNode } from '../../src/protocol/running/workflows.ts';
import type { Answer, Api } from './api.ts';
import { node } from './definitions.ts';

/** An approval that takes every action unless it is told otherwise. */
export function approval(id: string, config: JsonObject = {}, more: Partial<WorkflowNode> = {}): WorkflowNode {
  const actions = ['accept', 'reject', 'refine', 'edit-accept', 'ask'];
  return node(id, 'core.approvalGate', { config: { title: `Approve ${id}`, actions, ...config }, ...more });
}

/** A gate that only some may decide. */
export function governanceGate(id: string, config: JsonObject, more: Partial<WorkflowNode> = {}): WorkflowNode {
  return node(id, 'core.openwop.governance.approvalGate', { config, ...more });
}

export function clarification(id: string, questions: readonly JsonObject[]): WorkflowNode {
  return node(id, 'core.clarificationGate', { config: { questions } });
}

/** An interrupt in the protocol's own words. */
export function interrupt(id: string, kind: string, data: JsonObject, more: JsonObject = {}): WorkflowNode {
  return node(id, 'core.interrupt', { config: { kind, data, ...more } });
}

/** Starts a run and gives its snapshot once it waits for somebody. */
export async function waitingRun(api: Api, workflowId: string, rest: object = {}): Promise<Answer['body']> {
  return waits(api, await api.run(workflowId, rest));
}

export function waits(api: Api, runId: string): Promise<Answer['body']> {
  return api.until(runId, ({ status }) => status.startsWith('waiting-'));
}

/** Answers what a node waits for. */
export function resolve(
  api: Api,
  runId: string,
  nodeId: string,
  resumeValue: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return api.post(`/v1/runs/${runId}/interrupts/${encodeURIComponent(nodeId)}`, { resumeValue }, headers);
}

/** Events of a run of one type, or of one family as `approval.`. */
export async function eventsOf(api: Api, runId: string, type: string): Promise<Answer['body'][]> {
  const events = await api.events(runId);
  return events.filter((event) => (type.endsWith('.') ? event.type.startsWith(type) : event.type === type));
}
