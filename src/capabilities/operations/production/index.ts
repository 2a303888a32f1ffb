import { isTerminal, statusOf } from '../../../engine/run/run.ts';
import type { Append } from '../../../runtime/append.ts';
import type { Log } from '../../../system/log.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';

/** The claim that a host may be run for others: durable, bounded, and with logs that say what became of every run. */
export const production: Capability<'production', object> = {
  name: 'production',
  advertise: () => ({ production: { supported: true } }),
  service: () => ({}),
  prepare: async ({ runtime: { hub, log } }) => hub.onAppend((append) => logEnd(log, append)),
};

function logEnd(log: Log, { run, identity }: Append): void {
  if (!isTerminal(run)) return;
  const { runId, workflowId } = run.facts;
  const { tenant } = identity.subject;
  log.info({ runId, tenant, workflowId, status: statusOf(run), errorCode: run.error?.code }, 'run ended');
}
