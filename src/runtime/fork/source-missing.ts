import type { RunError } from '../../protocol/errors.ts';

/** The error of a side-effect node in a replay whose source recorded no outcome: a replay performs no effects. */
export const SOURCE_MISSING: RunError = {
  code: 'replay_source_missing',
  message: 'A replay touches nothing outside, and the run it replays has no outcome of this node to go by.',
  retryable: false,
};
