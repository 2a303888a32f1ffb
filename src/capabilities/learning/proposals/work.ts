import { isRefusal } from '../../../protocol/errors.ts';
import { OUTDATED, perform } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { WorkHandler } from '../../../runtime/work-kind.ts';
import { TemporaryFailure } from '../../../system/temporary-failure.ts';
import type { Activation } from './activation.ts';

/** Closes a gate whose time is up. The item is due again when the run has a later gate by then. */
export function gateTimeoutHandler(runtime: Runtime, activation: Pick<Activation, 'expireGate'>): WorkHandler {
  return async ({ tenant, payload: runId }) => {
    const dueAgainAt = await perform(runtime, () => activation.expireGate(tenant, runId), { mutexKey: runId });
    // The item stays: without it the gate would never time out.
    if (dueAgainAt === OUTDATED) throw new TemporaryFailure(OUTDATED.message);
    return isRefusal(dueAgainAt) ? {} : { dueAgainAt };
  };
}
