import { MAX_RUNTIME_MS, MIN_INTERVAL_SEC } from '../../../protocol/starting/heartbeats.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { HEARTBEAT_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { HEARTBEAT, type HeartbeatService, heartbeatService } from './service.ts';

/** Looks that are slow are somebody else's fault; they must not keep others waiting. */
const AT_ONCE = 50;

/** Things that are looked at again and again, and start runs only when they have changed. */
export const heartbeat: Capability<'heartbeat', HeartbeatService> = {
  name: 'heartbeat',
  advertise: () => ({
    heartbeat: { supported: true, minIntervalSec: MIN_INTERVAL_SEC, maxRuntimeMs: MAX_RUNTIME_MS },
  }),
  migrations: HEARTBEAT_TABLES,
  service: heartbeatService,
  routes,
  work: (_host, { beating }) => ({ [HEARTBEAT]: { handle: beating.handle, atOnce: AT_ONCE } }),
};
