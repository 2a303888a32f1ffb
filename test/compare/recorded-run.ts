import type { Answer, Api } from '../support/api.ts';
import { sortedBy } from './order.ts';
import type { Stage } from './scenario.ts';

type Body = Answer['body'];

/** How the log of a run is compared: to the letter, or node by node where nodes run at the same time. */
export type LogOrder = 'exact' | 'by-node';

const SETTLED = /^(?:completed|failed|cancelled|waiting-.*|paused)$/;

/** Waits until a run has ended or waits for somebody, and returns its snapshot. */
export function settled(api: Api, runId: string): Promise<Body> {
  return api.until(runId, ({ status }) => SETTLED.test(status));
}

/** Records everything that can be read of a run, and of the runs that it started. */
export async function recordRun(
  stage: Stage,
  api: Api,
  runId: string,
  { name, order = 'exact' }: { readonly name: string; readonly order?: LogOrder },
): Promise<void> {
  const children = await settledChildren(api, runId);
  const { body: snapshot } = await api.get(`/v1/runs/${runId}`);
  const events = await api.events(runId);
  const { body: bundle } = await api.get(`/v1/runs/${runId}/debug-bundle`);
  const { body: ancestry } = await api.get(`/v1/runs/${runId}/ancestry`);
  const steady = order === 'exact' ? (value: Body): Body => value : byNode;
  stage.record(`${name}: snapshot`, steady(snapshot));
  stage.record(`${name}: events`, steady({ events }));
  stage.record(`${name}: debug bundle`, steady(bundle));
  stage.record(`${name}: ancestry`, ancestry);
  for (const artifactId of artifactIds(events)) {
    const { body } = await api.get(`/v1/runs/${runId}/artifacts/${artifactId}`);
    stage.record(`${name}: artifact`, body);
  }
  for (const [index, child] of children.entries()) {
    await recordRun(stage, api, child.runId, { name: `${name}: child ${index + 1}`, order });
  }
}

function artifactIds(events: readonly Body[]): string[] {
  return events.filter(({ type }) => type === 'artifact.created').map(({ payload }) => payload.artifactId);
}

/** The runs that a run started, once they are settled, in an order that does not depend on which came first. */
async function settledChildren(api: Api, parentId: string): Promise<{ readonly runId: string }[]> {
  const { status } = await settled(api, parentId);
  const dispatched = (await api.events(parentId)).filter(({ payload }) => payload?.childRunId !== undefined);
  const nodes = new Map<string, string>(dispatched.map(({ nodeId, payload }) => [payload.childRunId, nodeId]));
  const children = await Promise.all(
    [...nodes].map(async ([runId, nodeId]) => {
      const { workflowId, inputs } = await (status === 'cancelled' ? api.ended(runId) : settled(api, runId));
      return { runId, key: JSON.stringify([nodeId, workflowId, inputs]) };
    }),
  );
  return sortedBy(children, ({ key }) => key);
}

/** Orders events and spans by node, and leaves out where in the log they were. */
function byNode(document: Body): Body {
  const { events, spans, childRuns, channels, ...rest } = document;
  return {
    ...rest,
    ...(events && { events: sortedBy(events as Body[], ({ nodeId }) => nodeId ?? '').map(withoutPosition) }),
    ...(spans && {
      spans: sortedBy(spans as Body[], ({ attributes }) => attributes['openwop.node_id'] ?? '').map(withoutPosition),
    }),
    ...(childRuns && { childRuns: childRuns.map(({ status }: Body) => status).sort() }),
    ...(channels && { channels: sortedChannels(channels) }),
  };
}

function withoutPosition({ sequence: _sequence, eventId: _eventId, ...rest }: Body): Body {
  if (!rest.attributes) return rest;
  const { 'openwop.event_seq': _position, ...attributes } = rest.attributes;
  return { ...rest, attributes };
}

function sortedChannels(channels: Record<string, Body>): Body {
  const entries = Object.entries(channels).map(([name, value]) => [
    name,
    Array.isArray(value) ? sortedBy(value, (item) => JSON.stringify(item)) : value,
  ]);
  return Object.fromEntries(entries);
}
