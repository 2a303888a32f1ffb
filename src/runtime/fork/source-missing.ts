import type { RunError } from '../../protocol/errors.ts';

/** Why a node of a replay fails that would have to touch the world. */
export const SOURCE_MISSING: RunError = {
  code: 'replay_source_missing',
  message: 'A replay touches nothing outside, and the run it replays has no outcome of this node to go by.',
  retryable: false,
};
