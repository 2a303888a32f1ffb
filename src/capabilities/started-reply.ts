import type { RunStatus } from '../protocol/running/runs.ts';
import { type Reply, reply } from './request.ts';

/** The reply to a request that started a run: its id, and the URLs to follow it. */
export function startedReply(origin: string, { runId, status }: { runId: string; status: RunStatus }): Reply {
  const statusUrl = `${origin}/v1/runs/${runId}`;
  return reply(201, { runId, status, eventsUrl: `${statusUrl}/events`, statusUrl });
}
