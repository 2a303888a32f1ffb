import type { JsonObject } from '../../../protocol/format/json.ts';
import {
  type HeartbeatEvaluated,
  type HeartbeatStateChanged,
  MAX_RUNTIME_MS,
} from '../../../protocol/starting/heartbeats.ts';
import type { Visibility } from '../../../store/log.ts';
import { type Clock, sleep } from '../../../system/clock.ts';
import type { Storage } from '../../integrations/storage/door.ts';
import { INITIAL_STATE, tickOf } from '../../starting/heartbeats/rules.ts';
import { observeWithin } from '../../starting/starter/observing.ts';

/** What a heartbeat of a conformance suite observes, and how long that takes. */
interface TickTrial {
  readonly heartbeatId: string;
  readonly observedState: unknown;
  readonly slowMs: number;
}

/** The events of a tick. */
interface TickTrialResult {
  readonly evaluated: readonly HeartbeatEvaluated[];
  readonly stateChanged: readonly HeartbeatStateChanged[];
}

const NAMESPACE = 'capstan.heartbeat-trials';

/** A tick by the rules of heartbeats whose observation is given; its state is stored, and no run is started. */
export async function tryTick(
  { clock, storage }: { readonly clock: Clock; readonly storage: Pick<Storage, 'perform'> },
  { tenant }: Visibility,
  { heartbeatId, observedState, slowMs }: TickTrial,
): Promise<TickTrialResult> {
  const place = { namespace: NAMESPACE, key: heartbeatId };
  const scope = { tenant, workspace: '' };
  const { found, value } = await storage.perform(scope, { op: 'get', ...place });
  const result = await observeWithin(clock, MAX_RUNTIME_MS, async (signal) => {
    await sleep(clock, slowMs, signal);
    return observedState;
  });
  const { status, change } = tickOf({}, found ? (value as JsonObject) : INITIAL_STATE, result);
  if (change) await storage.perform(scope, { op: 'set', ...place, value: change.to });
  return {
    evaluated: [{ heartbeatId, status, changed: change !== undefined }],
    stateChanged: change ? [{ heartbeatId, from: change.from, to: change.to }] : [],
  };
}
