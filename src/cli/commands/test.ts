import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { REGISTER } from '../../build/project-imports.ts';
import type { CommandSpec } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';

/** `capstan test`; exits with 1 when a test fails. */
export const test: CommandSpec = {
  name: 'test',
  takes: '[folder]',
  summary: 'Run the tests of a project (*.test.ts) with the test runner of Node',
  example: 'test my-agent',
  async run(_context, { args: [folder = '.'] }) {
    const cwd = resolve(folder);
    if (!existsSync(cwd)) throw new UsageError(`There is no folder ${cwd}.`);
    const child = spawn(process.execPath, ['--import', REGISTER, '--test'], { cwd, stdio: 'inherit' });
    const [code] = await once(child, 'close');
    return code === 0 ? EXIT.done : EXIT.refused;
  },
};
