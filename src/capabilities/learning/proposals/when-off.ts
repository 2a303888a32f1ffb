import { refuse } from '../../../protocol/errors.ts';
import { postpone } from '../../../runtime/work-kind.ts';
import type { Clock } from '../../../system/clock.ts';
import type { Contributions } from '../../capability.ts';
import { AnswerDeciders } from '../../people/interrupts/door.ts';
import { GATE_TIMEOUT } from './activation.ts';

const OFF = refuse('conflict', 'Proposals are disabled on this host.', { reason: 'off' });

/** What is left of proposals that the operator has switched off: gates that are open stay so, and nobody answers them. */
export function proposalsWhenOff(clock: Clock): Contributions {
  return {
    work: { [GATE_TIMEOUT]: { handle: postpone(clock) } },
    extensions: [AnswerDeciders.of({ workflowId: 'capstan-proposal', decide: async () => OFF })],
  };
}
