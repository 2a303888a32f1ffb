import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';

/**
 * The environment of a thread: nothing of the host's, but where Node stores compiled code if it does. Otherwise, each thread
 * would compile its program anew.
 */
export function threadEnvironment(): Record<string, string> {
  // Below the folder that is asked for, Node has one for each of its versions.
  const folder = getCompileCacheDir();
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) };
}
