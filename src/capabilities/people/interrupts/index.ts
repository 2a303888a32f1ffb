import { APPROVAL_ACTIONS } from '../../../engine/people/approval.ts';
import { INTERRUPT_DATA } from '../../../protocol/people/interrupts.ts';
import { ensureWork } from '../../../store/queue.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { projectInterrupts } from './project.ts';
import { forgetInterrupts, INTERRUPT_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { type InterruptService, interruptService } from './service.ts';

const ROTATE_KEYS = 'rotate-token-keys';
const ROTATE_EVERY_MS = 24 * 60 * 60 * 1_000;

/** Nodes that wait for somebody, and whoever answers them. */
export const interrupts: Capability<'interrupts', InterruptService> = {
  name: 'interrupts',
  advertise: () => ({
    interrupts: { supportedKinds: Object.keys(INTERRUPT_DATA), approvalActions: [...APPROVAL_ACTIONS] },
    extensions: {
      interrupts: {
        profiles: [
          'openwop-interrupt-quorum',
          'openwop-interrupt-auth-required',
          'openwop-interrupt-external-event',
          'openwop-interrupt-cascade-cancel',
        ],
        signedCallbackTokens: true,
      },
    },
  }),
  migrations: INTERRUPT_TABLES,
  service: interruptService,
  reactions: () => [projectInterrupts],
  forget: (run) => [forgetInterrupts(run)],
  routes,
  work: ({ runtime }, service) => ({
    [ROTATE_KEYS]: {
      handle: async () => ({ writes: await service.rotateKeys(), dueAgainAt: runtime.clock.now() + ROTATE_EVERY_MS }),
    },
  }),
  prepare: async ({ runtime }) => {
    await runtime.store.commit([ensureWork({ workId: ROTATE_KEYS, kind: ROTATE_KEYS, tenant: '*', dueAt: 0 })]);
  },
};
