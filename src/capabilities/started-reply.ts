import type { RunStatus } from '../protocol/running/runs.ts';
import { type Reply, reply } from './request.ts';

/** What is answered when a run has begun: which one, and where to follow it. */
export function startedReply(origin: string, { runId, status }: { runId: string; status: RunStatus }): Reply {
  const statusUrl = `${origin}/v1/runs/${runId}`;
  return reply(201, { runId, status, eventsUrl: `${statusUrl}/events`, statusUrl });
}
