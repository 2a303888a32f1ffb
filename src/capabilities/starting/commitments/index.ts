import { FIRE_CONDITIONS } from '../../../protocol/starting/commitment-events.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { COMMITMENT_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { COMMITMENT, type CommitmentService, commitmentService } from './service.ts';

/** Looks that are slow must not keep others waiting. */
const AT_ONCE = 50;

/** Things that were promised: each is done once, when its time has come or its condition is met. */
export const commitments: Capability<'commitments', CommitmentService> = {
  name: 'commitments',
  advertise: () => ({ agents: { commitments: { supported: true, fireConditions: [...FIRE_CONDITIONS] } } }),
  migrations: COMMITMENT_TABLES,
  service: commitmentService,
  routes,
  work: (_host, { keeping }) => ({ [COMMITMENT]: { handle: keeping.handle, atOnce: AT_ONCE } }),
};
