import type { RunStatus } from '../protocol/running/runs.ts';
import { type Reply, reply } from './request.ts';

/** The reply to a request that started a run: its id, the URLs to follow it, and what verifies its callback. */
export function startedReply(
  origin: string,
  { runId, status }: { readonly runId: string; readonly status: RunStatus },
  callback?: object,
): Reply {
  const statusUrl = `${origin}/v1/runs/${runId}`;
  return reply(201, { runId, status, eventsUrl: `${statusUrl}/events`, statusUrl, ...(callback ? { callback } : {}) });
}
