import type { JsonObject } from '../../../protocol/format/json.ts';
import {
  type HeartbeatEvaluated,
  type HeartbeatStateChanged,
  MAX_RUNTIME_MS,
} from '../../../protocol/starting/heartbeats.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Visibility } from '../../../store/log.ts';
import { sleep } from '../../../system/clock.ts';
import type { Storage } from '../../integrations/storage/door.ts';
import { lookWithin } from './observing.ts';
import { NOTHING_SEEN, tickOf } from './rules.ts';

export interface Trial {
  readonly heartbeatId: string;
  readonly observedState: unknown;
  readonly slowMs: number;
}

export interface TrialResult {
  readonly evaluated: readonly HeartbeatEvaluated[];
  readonly stateChanged: readonly HeartbeatStateChanged[];
}

const NAMESPACE = 'capstan.heartbeat-trials';

/** A tick by the rules of a heartbeat that sees what it is told; what it saw is remembered, and nothing else happens. */
export function tickTrial({ clock }: Runtime, storage: Pick<Storage, 'perform'>) {
  return async ({ tenant }: Visibility, { heartbeatId, observedState, slowMs }: Trial): Promise<TrialResult> => {
    const place = { namespace: NAMESPACE, key: heartbeatId };
    const scope = { tenant, workspace: '' };
    const { found, value } = await storage.perform(scope, { op: 'get', ...place });
    const look = await lookWithin(clock, MAX_RUNTIME_MS, async (signal) => {
      await sleep(clock, slowMs, signal);
      return observedState;
    });
    const { status, change } = tickOf({}, found ? (value as JsonObject) : NOTHING_SEEN, look);
    if (change) await storage.perform(scope, { op: 'set', ...place, value: change.to });
    return {
      evaluated: [{ heartbeatId, status, changed: change !== undefined }],
      stateChanged: change ? [{ heartbeatId, from: change.from, to: change.to }] : [],
    };
  };
}
