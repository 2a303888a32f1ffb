import { cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EXAMPLES } from '../../examples.ts';
import { VERSION } from '../../version.ts';
import type { CommandSpec } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';

/** `capstan init`; writes nothing into a folder that has something in it. */
export const init: CommandSpec = {
  name: 'init',
  takes: '<folder>',
  summary: 'Make a project: a node and a workflow of your own, with a test',
  example: 'init my-agent',
  json: 'result',
  async run(context, { args: [path = '.'] }) {
    const folder = resolve(path);
    if (existsSync(folder) && readdirSync(folder).length > 0) {
      throw new UsageError(`${folder} is not empty. Name an empty or new folder.`);
    }
    mkdirSync(folder, { recursive: true });
    cpSync(fileURLToPath(new URL('project/', EXAMPLES)), folder, { recursive: true });
    for (const [name, text] of Object.entries(filesOf(folder))) writeFileSync(join(folder, name), text);
    const files = readdirSync(folder).sort();
    context.show({ folder, files }, () => [
      `Made a project in ${folder}:`,
      ...files.map((file) => `  ${file}`),
      '',
      'Try it:',
      ...(hasTypes ? [] : [`  npm --prefix ${PACKAGE} run build  # makes the types that your editor needs`]),
      `  cd ${path}`,
      `  npm install       # types for your editor, and the command${isCheckout ? FROM_CHECKOUT : ''}`,
      '  npx capstan test  # runs its test',
      '  npx capstan dev   # serves it, and again whenever you change it',
    ]);
    return EXIT.done;
  },
};

const PACKAGE = fileURLToPath(new URL('..', EXAMPLES));
/** Whether this is a checkout of the repository, which may be of no version that was published. */
const isCheckout = existsSync(join(PACKAGE, 'src', 'cli', 'main.ts'));
const FROM_CHECKOUT = `; both are those of ${PACKAGE}`;
/** Whether `npm ci` made the types, which it does not with `--ignore-scripts`. */
const hasTypes = existsSync(join(PACKAGE, 'dist', 'types', 'build', 'index.d.ts'));

/** What depends on the name and place of the project or on this version. */
function filesOf(folder: string): Readonly<Record<string, string>> {
  const name =
    basename(folder)
      .toLowerCase()
      .replace(/[^a-z0-9-]+/g, '-') || 'project';
  const scripts = { dev: 'capstan dev', start: 'capstan serve --project .', test: 'capstan test' };
  const dependencies = { capstan: isCheckout ? `file:${relative(folder, PACKAGE)}` : `^${VERSION}` };
  const devDependencies = { '@types/node': '^24.0.0', typescript: '^5.9.0' };
  const compilerOptions = {
    target: 'es2024',
    module: 'nodenext',
    strict: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
    skipLibCheck: true,
    types: ['node'],
  };
  return {
    'package.json': text({ name, private: true, type: 'module', scripts, dependencies, devDependencies }),
    'tsconfig.json': text({ compilerOptions, include: ['*.ts'] }),
    '.gitignore': 'node_modules\n.capstan\n.env\ndata\n',
  };
}

function text(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
