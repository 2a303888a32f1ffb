import { constants, setPriority } from 'node:os';
import { platform } from 'node:process';

/**
 * Lets the main thread go first: a thread that computes for one tenant must not take the processor from the one that
 * answers all of them. Only Linux has a priority for each thread; elsewhere this would slow the whole process.
 */
export function lowerThreadPriority(): void {
  if (platform !== 'linux') return;
  try {
    setPriority(0, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // The operator's user may not: then all threads are equal.
  }
}
