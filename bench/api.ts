import type { WorkflowDefinition, WorkflowNode } from '../src/protocol/running/workflows.ts';
import { type BenchServer, KEY } from './servers.ts';

/** Sends a request that has to succeed, and gives back what was answered. */
// biome-ignore lint/suspicious/noExplicitAny: a client for a handful of replies
export async function api({ url }: BenchServer, method: string, path: string, body?: unknown, key = KEY): Promise<any> {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

/** Starts a run and waits for its end. */
export async function endedRun(server: BenchServer, workflowId: string, key = KEY): Promise<string> {
  const { runId } = await api(server, 'POST', '/v1/runs', { workflowId }, key);
  await untilEnded(server, runId, key);
  return runId;
}

/** Waits for the end of a run. */
export async function untilEnded(server: BenchServer, runId: string, key = KEY): Promise<void> {
  for (let last = -1, isComplete = false; !isComplete; ) {
    const after = last < 0 ? '' : `?lastSequence=${last}`;
    const polled = await api(server, 'GET', `/v1/runs/${runId}/events/poll${after}`, undefined, key);
    isComplete = polled.isComplete;
    last = polled.lastEventSeq;
  }
}

/** Waits until the tenant has no run with a status. */
export async function untilNone(server: BenchServer, status: string): Promise<void> {
  for (;;) {
    const { items } = await api(server, 'GET', `/v1/host/capstan/runs?status=${status}&limit=1`);
    if (items.length === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The path under which definitions are registered. */
export const WORKFLOWS = '/v1/host/capstan/workflows';

/** Registers definitions, one after the other. */
export async function register(server: BenchServer, definitions: readonly WorkflowDefinition[]): Promise<void> {
  for (const definition of definitions) await api(server, 'POST', WORKFLOWS, definition);
}

/** A definition of so many nodes in a line. */
export function chain(length: number): WorkflowDefinition {
  const ids = Array.from({ length }, (_, index) => `n${index}`);
  return {
    id: `chain-${length}`,
    name: `${length} nodes in a line`,
    version: '1',
    nodes: ids.map((id) => oneOf(id, 'core.noop')),
    edges: ids.slice(1).map((id, index) => ({ id: `e${index}`, sourceNodeId: ids[index]!, targetNodeId: id })),
    triggers: [],
    variables: [],
    metadata: {},
    settings: {},
  };
}

/** A node of a type, without config. */
export function oneOf(id: string, typeId: string): WorkflowNode {
  return { id, typeId, name: id, position: { x: 0, y: 0 }, config: {}, inputs: {} };
}
