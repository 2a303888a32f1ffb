import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { relative, resolve, sep } from 'node:path';
import { REGISTER } from '../../build/project-imports.ts';
import type { CommandSpec } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { environmentOf } from '../project-environment.ts';

/** `capstan test`; exits with 1 when a test fails, and with 2 when there is none. */
export const test: CommandSpec = {
  name: 'test',
  takes: '[folder]',
  summary: 'Run the tests of a project (*.test.ts) with the test runner of Node',
  example: 'test my-agent',
  json: 'nothing',
  async run({ terminal }, { args: [folder = '.'] }) {
    const cwd = resolve(folder);
    if (!existsSync(cwd)) throw new UsageError(`There is no folder ${cwd}.`);
    if (!hasTests(cwd)) {
      throw new UsageError(
        `There are no tests in ${cwd}: no file whose name ends in .test.ts. \`capstan init\` makes a project with one.`,
      );
    }
    const env = environmentOf(cwd, terminal);
    const child = spawn(process.execPath, ['--import', REGISTER, '--test'], { cwd, env, stdio: 'inherit' });
    const [code] = await once(child, 'close');
    return code === 0 ? EXIT.done : EXIT.refused;
  },
};

/** The names of files that the test runner of Node takes for tests, and its folder for them. */
const TEST_FILE = /(?:^|[.\-_])test\.[cm]?[jt]s$|^test-.*\.[cm]?[jt]s$/;

function hasTests(folder: string): boolean {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).some(({ name, parentPath }) => {
    const parents = relative(folder, parentPath).split(sep);
    if (parents.includes('node_modules')) return false;
    return TEST_FILE.test(name) || (parents.includes('test') && /\.[cm]?[jt]s$/.test(name));
  });
}
