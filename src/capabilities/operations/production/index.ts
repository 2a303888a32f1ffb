import { isTerminal, statusOf } from '../../../engine/run/run.ts';
import type { Append } from '../../../runtime/reaction.ts';
import type { Log } from '../../../system/log.ts';
import { defineCapability } from '../../capability.ts';

/** The claim that the host is fit for production: durable, bounded, and logs how every run ended. */
export const production = defineCapability({
  name: 'production',
  build: ({ runtime: { log } }) => ({
    advertise: () => ({ production: { supported: true } }),
    onAppend: [(append) => logEnd(log, append)],
  }),
});

function logEnd(log: Log, { run, identity }: Append): void {
  if (!isTerminal(run)) return;
  const { runId, workflowId } = run.facts;
  const { tenant } = identity.subject;
  log.info({ runId, tenant, workflowId, status: statusOf(run), errorCode: run.error?.code }, 'run ended');
}
