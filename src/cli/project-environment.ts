import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import type { Terminal } from './terminal.ts';

/** The file of a project that sets environment variables for those who develop it. */
export const ENVIRONMENT_FILE = '.env';

/** The environment in which the code of a project is developed and tested: that of the terminal wins over the file. */
export function environmentOf(folder: string, { environment }: Pick<Terminal, 'environment'>): NodeJS.ProcessEnv {
  const file = join(folder, ENVIRONMENT_FILE);
  const own = existsSync(file) ? parseEnv(readFileSync(file, 'utf8')) : {};
  return { ...own, ...environment };
}
