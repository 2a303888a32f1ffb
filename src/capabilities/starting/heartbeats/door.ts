import { door } from '../../capability.ts';
import type { HeartbeatService } from './service.ts';

export type Heartbeats = HeartbeatService;
export const Heartbeats = door<Heartbeats>()('heartbeat');
