import { APPROVAL_ACTIONS } from '../../../engine/people/approval.ts';
import { INTERRUPT_DATA } from '../../../protocol/people/interrupts.ts';
import { commitOrThrow } from '../../../runtime/change.ts';
import { defineCapability } from '../../capability.ts';
import { hostSettings } from '../../host-settings.ts';
import { bindRoutes } from '../../request.ts';
import { InboxSources } from '../inbox/door.ts';
import { Interrupts } from './door.ts';
import { interruptInboxSource } from './inbox.ts';
import { INTERRUPT_NODES } from './nodes.ts';
import { projectInterrupts } from './reactions.ts';
import { forgetInterrupts, INTERRUPT_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { InterruptService } from './service.ts';
import { TokenKeys } from './token-keys.ts';
import { ROTATE_KEYS, rotateKeysHandler, rotationWork } from './work.ts';

/** Nodes that wait for an answer, and the ways to give one. */
export const interrupts = defineCapability({
  name: 'interrupts',
  provides: Interrupts,
  settings: hostSettings,
  tables: INTERRUPT_TABLES,
  nodes: () => INTERRUPT_NODES,
  build: (host, _needs, { secret }) => {
    const { store, clock } = host.runtime;
    const keys = new TokenKeys(host.runtime, secret);
    const service = new InterruptService(host, keys);
    return {
      service,
      advertise: () => ({
        interrupt: { approverRouting: { supported: true, refKinds: ['role'] } },
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
      routes: bindRoutes(routes, { interrupts: service }),
      reactions: [projectInterrupts],
      extensions: [InboxSources.of(interruptInboxSource(host))],
      forgetRun: (run) => [forgetInterrupts(run)],
      work: { [ROTATE_KEYS]: { handle: rotateKeysHandler(clock, keys) } },
      prepare: () => commitOrThrow(store, [rotationWork()]),
    };
  },
});
