import { refuse } from '../../../protocol/errors.ts';
import { postpone } from '../../../runtime/work-kind.ts';
import type { Clock } from '../../../system/clock.ts';
import type { Contributions } from '../../capability.ts';
import { RunStarters } from '../../starting/starter/door.ts';
import { OWNER_KIND } from './arms.ts';
import { GOAL_WORK } from './changes.ts';
import { noteContributions } from './reactions.ts';

const OFF = refuse('conflict', 'Goals are disabled on this host.', { reason: 'off' });

/**
 * What is left of goals that the operator has switched off: their arms start nothing, and what happens to their runs is
 * still noted, so that they go on where they were once they are switched on again.
 */
export function goalsWhenOff(clock: Clock): Contributions {
  return {
    work: { [GOAL_WORK]: { handle: postpone(clock) } },
    reactions: [noteContributions],
    extensions: [RunStarters.of({ ownerKind: OWNER_KIND, start: async () => OFF, observe: async () => undefined })],
  };
}
