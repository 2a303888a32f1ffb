import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { inject } from 'vitest';
import { compileCache } from './process.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** What is called by name on the pages, for machines that do not have it. */
const PROGRAMS = { curl: 'test/support/curl.mjs', jq: 'test/support/jq.mjs' };
/** What stands on a page for the key of its reader. */
export const KEY_SHOWN = 'hk_live_…';
const isInstalled = (name: string): boolean =>
  (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, name)));

/** What came of pasted lines. */
export interface Pasted {
  readonly code: number;
  /** What a person would have read, output and errors. */
  readonly shown: string;
}

/** A place where a reader of the pages pastes what they say: a folder with the examples, and a shell. */
export class Desk {
  readonly folder: string;
  readonly #environment: Record<string, string | undefined>;

  constructor(folder: string, environment: Record<string, string>) {
    this.folder = folder;
    const programs = join(folder, 'programs');
    mkdirSync(programs, { recursive: true });
    const missing = Object.entries(PROGRAMS).filter(([name]) => !isInstalled(name));
    for (const [name, path] of [...missing, ['capstan', inject('program')]] as const) {
      writeFileSync(join(programs, name), `#!/bin/sh\nexec "${process.execPath}" "${resolve(ROOT, path)}" "$@"\n`);
      chmodSync(join(programs, name), 0o755);
    }
    // In a checkout, npx finds the command of the checkout.
    writeFileSync(join(programs, 'npx'), '#!/bin/sh\nexec "$@"\n');
    chmodSync(join(programs, 'npx'), 0o755);
    symlinkSync(join(ROOT, 'examples'), join(folder, 'examples'));
    this.#environment = {
      PATH: [programs, dirname(process.execPath), process.env.PATH].join(delimiter),
      HOME: folder,
      XDG_CONFIG_HOME: join(folder, 'config'),
      NO_COLOR: '1',
      ...compileCache(),
      ...environment,
    };
  }

  /** Pastes lines into a shell that stops at the first one that fails, with the key where the page has room for it. */
  async paste(lines: string): Promise<Pasted> {
    const text = lines.replaceAll(KEY_SHOWN, this.#environment.CAPSTAN_KEY ?? '');
    const pasted = promisify(execFile)('bash', ['--norc', '-euo', 'pipefail', '-c', text], {
      cwd: this.folder,
      env: this.#environment,
    });
    const { stdout, stderr, ...rest } = await pasted.catch(
      (error: { code: number; stdout: string; stderr: string }) => error,
    );
    return { code: 'code' in rest ? rest.code : 0, shown: `${stdout}\n${stderr}` };
  }
}
