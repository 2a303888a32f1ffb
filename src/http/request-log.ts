import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RequestAudit } from '../capabilities/trust/audit/door.ts';
import type { Clock } from '../system/clock.ts';
import type { Log } from '../system/log.ts';
import type { Metrics } from './metrics.ts';

/** Where answered requests are recorded. */
interface RequestLogOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'observe'>;
  readonly audit: Pick<RequestAudit, 'answered'>;
  /** The level of its lines. */
  readonly level: 'info' | 'debug';
}

/** The hook that records every answered request in the metrics, the audit log and the log. */
export function requestLog({ clock, log, metrics, audit, level }: RequestLogOptions) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { method, routeOptions, caller, id, knownPath } = request;
    const { route = knownPath?.path ?? 'none', scope } = routeOptions.config;
    const status = reply.statusCode;
    const ms = clock.now() - request.startedAt;
    metrics.observe(route, method, status, ms / 1_000);
    if (caller) audit.answered(caller, { method, route, scope, status, ms });
    const tenant = caller?.subject.tenant;
    const fields = { requestId: id, method, route, status, ms, tenant, runId: runIdOf(request), keyId: caller?.keyId };
    log[level](fields, 'answered');
  };
}

const RUN_ID = /^run-[0-9a-z]{22}$/;

/** The run of the path, for the log. Other text from a path may be confidential and stays out of it. */
function runIdOf({ params }: FastifyRequest): string | undefined {
  const { runId = '' } = (params ?? {}) as { runId?: string };
  return RUN_ID.test(runId) ? runId : undefined;
}
