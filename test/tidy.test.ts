import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { BUNDLED, PORTABLE as PORTABLE_ENTRIES, PROGRAM } from '../scripts/bundle.ts';
import { once } from '../src/protocol/format/once.ts';
import { VERSION } from '../src/version.ts';

/**
 * Goal: the style guards itself. Method: the text of the sources is read, and each rule says what a reviewer would
 * have said; a test passes when there is nothing to say.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PACKAGE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  version: string;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
};

/** Which parts of `src` each part may import. A part is a folder, or a file that stands by itself. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  protocol: [],
  system: [],
  version: [],
  engine: ['protocol'],
  store: ['protocol', 'system'],
  runtime: ['engine', 'store', 'protocol', 'system'],
  capabilities: ['runtime', 'engine', 'store', 'protocol', 'system'],
  http: ['capabilities', 'runtime', 'engine', 'store', 'protocol', 'system'],
  config: ['capabilities', 'protocol'],
  examples: [],
  index: ['config', 'host', 'system', 'version'],
  host: ['config', 'http', 'capabilities', 'runtime', 'engine', 'store', 'protocol', 'system', 'version', 'examples'],
  build: ['host', 'config', 'client', 'http', 'capabilities', 'runtime', 'engine', 'store', 'protocol', 'system'],
  client: ['protocol'],
  conformance: ['protocol'],
  cli: ['client', 'conformance', 'protocol', 'version', 'examples'],
};

/** What does not speak to a host over the wire: the command that is the host, and those that need none. */
const MAY_ALSO_IMPORT: Record<string, readonly string[]> = {
  'src/cli/commands/serve.ts': ['host', 'config', 'capabilities', 'system', 'build'],
  'src/cli/commands/dev.ts': ['system'],
  'src/cli/commands/test.ts': ['build'],
  'src/cli/workflow-folder.ts': ['build', 'engine'],
  'src/cli/project-worker.ts': ['build'],
  'src/cli/store-report.ts': ['store', 'capabilities', 'system'],
  'src/cli/commands/audit.ts': ['system'],
  'src/cli/audit-file.ts': ['system'],
  'src/cli/recover-key.ts': ['host', 'config', 'system'],
  'src/cli/upgrade-report.ts': ['host', 'store', 'system'],
  'src/cli/start-failure.ts': ['config', 'store'],
  'src/cli/workflow-file.ts': ['engine', 'runtime', 'capabilities', 'config', 'http', 'system'],
};

/** What conformance suites try out that no other folder needs, so that no door offers it. */
const OPEN_TO_CONFORMANCE: readonly string[] = [
  'src/capabilities/starting/commitments/family.ts',
  'src/capabilities/starting/heartbeats/rules.ts',
  'src/capabilities/starting/schedules/rules.ts',
  'src/capabilities/starting/starter/observing.ts',
  'src/capabilities/starting/starter/work.ts',
];

/** Parts that also run in a browser. */
const PORTABLE: readonly string[] = ['protocol', 'engine', 'client'];

/** A folder without an index is no capability: it holds what the capabilities of its wing share. */
function isSharedInWing(folder: string): boolean {
  return !existsSync(join(ROOT, 'src/capabilities', folder, 'index.ts'));
}

/** What the package offers, as the sources that it is built from. */
const ENTRIES = [...Object.values(PROGRAM), ...Object.values(PORTABLE_ENTRIES)];
/** Where the machine is read: by the host, and by clients, which have nothing of the host. */
const CLOCK_HOMES: readonly string[] = ['src/system/real.ts', 'src/client/machine.ts'];
const ENVIRONMENT_HOMES: readonly string[] = ['src/config.ts', 'src/cli/terminal.ts'];
const SELF = 'test/tidy.test.ts';

/** Parts of the protocol that nobody needs who only speaks it. */
const OF_HOSTS: readonly string[] = [
  'src/protocol/documents/asyncapi.ts',
  'src/protocol/format/compiled-schema.ts',
  'src/protocol/format/declared-members.ts',
  'src/protocol/format/explain.ts',
  'src/protocol/format/json-error.ts',
  'src/protocol/format/json-text.ts',
  'src/protocol/running/event-rows.ts',
  'src/protocol/running/management.ts',
  'src/protocol/documents/openapi.ts',
  'src/protocol/format/parse-json.ts',
  'src/protocol/documents/routes.ts',
  'src/protocol/format/schema.ts',
  'src/protocol/format/trace.ts',
  'src/protocol/format/nearest.ts',
  'src/protocol/format/once.ts',
  'src/protocol/format/unknown-keys.ts',
];

const LINES_MAX = 450;
/** Files that may be longer, each because it is one thing. */
const LONG_FILES: Record<string, string> = {
  'test/contract/store-contract.ts': 'the definition of a store: one list of promises',
  'src/client/operations.ts': 'the table of operations: a row for each',
};

describe('imports', () => {
  it('go down only', () => {
    expect(
      sources().flatMap((file) =>
        file.imports.flatMap(({ target }) => {
          const part = target && partOf(target);
          if (!part || part === file.part || mayImport(file, part)) return [];
          const allowed = MAY_IMPORT[file.part] ?? [];
          return [
            `${file.path} imports ${target}, but ${file.part} may import ${allowed.length > 0 ? allowed.join(', ') : 'nothing'}.`,
          ];
        }),
      ),
    ).toEqual([]);
  });

  it('are known to the table: every part of src has its row', () => {
    const parts = new Set(sources().map(({ part }) => part));
    expect(
      [...parts].filter((part) => !MAY_IMPORT[part]).map((part) => `src/${part} is new: say here what it may import.`),
    ).toEqual([]);
  });

  it('lead into a capability only through its door, or to its settings', () => {
    expect(
      programs().flatMap(({ path, imports }) =>
        imports.flatMap(({ target }) => {
          const [, wing, folder, name] = /^src\/capabilities\/(\w+)\/([^/]+)\/(.+)$/.exec(target ?? '') ?? [];
          const family = `${wing}/${folder}`;
          if (!name || path.startsWith(`src/capabilities/${family}/`) || isOwnScaffolding(path, wing!)) return [];
          if (isSharedInWing(family) && path.startsWith(`src/capabilities/${wing}/`)) return [];
          if (name === 'door.ts' || name === 'settings.ts') return [];
          if (name === 'index.ts' && path === 'src/capabilities/index.ts') return [];
          if (isScaffolding(path) && OPEN_TO_CONFORMANCE.includes(target!)) return [];
          return [`${path} imports ${target}: use the door of ${family}, its ${name} is internal.`];
        }),
      ),
    ).toEqual([]);
  });

  it('of all capabilities stand in one list alone', () => {
    expect(
      sources()
        .filter(({ path, part }) => part === 'capabilities' && path !== 'src/capabilities/index.ts')
        .filter(({ imports }) => imports.some(({ target }) => target === 'src/capabilities/index.ts'))
        .map(({ path }) => `${path} imports the list of capabilities: a family does not know them all.`),
    ).toEqual([]);
  });

  it('bring nothing of Node into what also runs in a browser', () => {
    expect(
      programs()
        .filter(({ part }) => PORTABLE.includes(part))
        .flatMap(({ path, imports }) =>
          imports
            .filter(({ name }) => name.startsWith('node:'))
            .map(({ name }) => `${path} imports ${name}, which a browser does not have.`),
        ),
    ).toEqual([]);
  });

  it('bring no package into the client: what it takes from elsewhere are types, and they are gone when it runs', () => {
    expect(
      [...reachable('src/client/index.ts', importsAtRunTime)].flatMap((path) =>
        importsAtRunTime(path, withoutComments(read(path)))
          .filter(({ target }) => target === undefined)
          .map(({ name }) => `${path} imports ${name}, which the client cannot do without then: use import type.`),
      ),
    ).toEqual([]);
  });

  it('are relative and end in .ts, are of bin/, or are dependencies that the package names', () => {
    expect(
      [...sources(), ...tests()].flatMap((file) =>
        file.imports.flatMap(({ name, target }) => {
          const problem = target === undefined ? packageProblem(name, file) : pathProblem(name, target);
          return problem ? [`${file.path} imports ${name}: ${problem}`] : [];
        }),
      ),
    ).toEqual([]);
  });

  it('of src never lead out of it, except those of its tests into the support of all tests', () => {
    expect(
      sources().flatMap((file) =>
        file.imports
          .filter(({ target }) => target !== undefined && !target.startsWith('src/'))
          .filter(({ target }) => !(isForTests(file.path) && target!.startsWith('test/support/')))
          .map(({ target }) => `${file.path} imports ${target}, which is not part of the program.`),
      ),
    ).toEqual([]);
  });
});

describe('every file', () => {
  it('of the program is imported by somebody: what nobody reaches is deleted', () => {
    const reached = new Set(ENTRIES.flatMap((entry) => [...reachable(entry)]));
    expect(
      programs()
        .filter(({ path }) => !isForTests(path) && !reached.has(path))
        .map(({ path }) => `${path} is imported by nobody on the way from ${ENTRIES.join(', ')}: delete it.`),
    ).toEqual([]);
  });

  it('that helps tests is used by one, and by tests alone', () => {
    const users = [...sources(), ...tests()];
    const findings = sources()
      .filter(({ path }) => isHelper(path))
      .flatMap(({ path }) => {
        const importers = users.filter(({ imports }) => imports.some(({ target }) => target === path));
        if (importers.length === 0) return [`${path} helps no test: delete it.`];
        return importers
          .filter((importer) => !isForTests(importer.path) && !importer.path.startsWith('test/'))
          .map((importer) => `${importer.path} imports ${path}, which is for tests.`);
      });
    expect(findings).toEqual([]);
  });

  it(`has at most ${LINES_MAX} lines, unless it is one thing and listed`, () => {
    const files = [...programs(), ...tests().filter(({ path }) => !path.endsWith('.test.ts'))];
    const length = (path: string): number => read(path).split('\n').length;
    expect([
      ...files
        .filter(({ path }) => length(path) > LINES_MAX && !LONG_FILES[path])
        .map(({ path }) => `${path} has ${length(path)} lines: which two things is it?`),
      ...Object.keys(LONG_FILES)
        .filter((path) => !existsSync(join(ROOT, path)) || length(path) <= LINES_MAX)
        .map((path) => `${path} is not long any more: take it off the list.`),
    ]).toEqual([]);
  });

  it('is named in kebab-case, for what is inside', () => {
    const vague = /(^|[-/.])(utils?|helpers?|manager|common|misc)([-.]|$)/;
    expect(
      sources()
        .map(({ path }) => path)
        .flatMap((path) => [
          ...(/^[a-z0-9./-]+$/.test(path) ? [] : [`${path} is not in kebab-case.`]),
          ...(vague.test(path) ? [`${path} has a name that says nothing.`] : []),
        ]),
    ).toEqual([]);
  });
});

describe('the package', () => {
  it('offers every part of the protocol, but those that only hosts need', () => {
    const offered = importsOf('src/protocol/index.ts', read('src/protocol/index.ts')).map(({ target }) => target);
    expect(
      programs()
        .filter(({ path, part }) => part === 'protocol' && path !== 'src/protocol/index.ts')
        .filter(({ path }) => !OF_HOSTS.includes(path) && !offered.includes(path))
        .map(({ path }) => `${path} is not in src/protocol/index.ts: add it, or list it here as a thing of hosts.`),
    ).toEqual([]);
  });
});

describe('ambient things', () => {
  const AMBIENT: Record<string, RegExp> = {
    'Date.now': /\bDate\.now\b/,
    'Math.random': /\bMath\.random\b/,
    // The limit of a connection is none of ours: only Node knows what was read of it.
    setTimeout: /(?<!\braw\.)\bsetTimeout\b/,
    setInterval: /\bsetInterval\b/,
    setImmediate: /\bsetImmediate\b/,
    'new Date()': /\bnew Date\(\s*\)/,
    'performance.now': /\bperformance\.now\b/,
  };

  it('are handed in: hardly a file reads the clock and sets timers', () => {
    expect(
      programs()
        .filter(({ path }) => !CLOCK_HOMES.includes(path))
        .flatMap(({ path, code }) =>
          Object.entries(AMBIENT)
            .filter(([, pattern]) => pattern.test(code))
            .map(
              ([name]) => `${path} uses ${name}: take a clock as an argument, as ${CLOCK_HOMES.join(' and ')} have it.`,
            ),
        ),
    ).toEqual([]);
  });

  it('come from the environment in one place', () => {
    expect(
      programs()
        .filter(({ path, code }) => !ENVIRONMENT_HOMES.includes(path) && /\bprocess\.env\b/.test(code))
        .map(({ path }) => `${path} reads process.env: a setting goes into ${ENVIRONMENT_HOMES.join(' or ')}.`),
    ).toEqual([]);
  });
});

describe('the language', () => {
  const RULES: Record<string, RegExp> = {
    'has an enum, which Node does not strip: use a union or a table.': /^\s*(?:export )?(?:const )?enum\s+\w+/m,
    'has a default export: give the thing a name.': /^export default\b/m,
    'has a pattern for the end of a text that takes quadratic time: use withoutEnd of system/text-cuts.ts.':
      /(?<=[(=:,\s])\/(?:\[(?:[^\]\\\n]|\\.)+\]|\\[sSwWdDpP.](?:\{\w+\})?)[+*]\$\/\w*/,
    'has a pattern with a modifier, which V8 ignores where it does not optimize: give the whole pattern its flags.':
      /(?<!`)\(\?(?:[ims]+(?:-[ims]*)?|-[ims]+):/,
    'has a note to self: do it now, or write it where work is planned.': /\b(?:TODO|FIXME|XXX)\b/,
  };

  it('is the plain part of it', () => {
    expect(
      sources().flatMap(({ path, text }) =>
        Object.entries(RULES).flatMap(([sentence, pattern]) => (pattern.test(text) ? [`${path} ${sentence}`] : [])),
      ),
    ).toEqual([]);
  });
});

describe('tests', () => {
  it('are all run: none is skipped, singled out or put off', () => {
    const held = /\b(?:it|test|describe|suite)(?:\.\w+)*\.(skip|only|todo)\b/;
    expect(
      [...sources(), ...tests()]
        .filter(({ path }) => path !== SELF)
        .flatMap(({ path, code }) => {
          const [, how] = held.exec(code) ?? [];
          return how ? [`${path} has a test with .${how}: run it, or take it out and say why.`] : [];
        }),
    ).toEqual([]);
  });

  it('carry no notes to self', () => {
    expect(
      tests()
        .filter(({ path, text }) => path !== SELF && /\b(?:TODO|FIXME|XXX)\b/.test(text))
        .map(({ path }) => `${path} has a note to self: do it now, or write it where work is planned.`),
    ).toEqual([]);
  });
});

describe('the version', () => {
  it('is the same in the program and in the package', () => {
    expect(VERSION, 'src/version.ts and package.json disagree: change both.').toBe(PACKAGE.version);
  });
});

interface Import {
  /** As it is written. */
  readonly name: string;
  /** Where it leads inside the repository; undefined for packages. */
  readonly target: string | undefined;
}

interface Source {
  readonly path: string;
  /** The folder of `src` that it is in, or its own name where it stands by itself. */
  readonly part: string;
  readonly text: string;
  /** The text without comments. */
  readonly code: string;
  readonly imports: readonly Import[];
}

/** The folders of the conformance scaffolding are parts of one capability. */
function isOwnScaffolding(path: string, wing: string): boolean {
  return wing === 'conformance' && isScaffolding(path);
}

function isScaffolding(path: string): boolean {
  return path.startsWith('src/capabilities/conformance/');
}

function sources(): Source[] {
  return filesIn('src/**/*.ts');
}

/** What runs in production. */
function programs(): Source[] {
  return sources().filter(({ path }) => !path.endsWith('.test.ts'));
}

function tests(): Source[] {
  return filesIn('test/**/*.ts');
}

function filesIn(pattern: string): Source[] {
  return globSync(pattern, { cwd: ROOT })
    .map((path) => path.replaceAll('\\', '/'))
    .sort()
    .map((path) => {
      const text = read(path);
      const code = withoutComments(text);
      return { path, part: partOf(path), text, code, imports: importsOf(path, code) };
    });
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

function partOf(path: string): string {
  return /^src\/([^/]+?)(?:\.test)?(?:\.ts|\/)/.exec(path)?.[1] ?? '';
}

/** Good enough for formatted code: comments begin a line or follow a space. */
function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/ .*$/gm, '$1');
}

function importsOf(path: string, code: string): Import[] {
  const statements = /(?:^|\n)\s*(?:import|export)\b[^'";]*?\bfrom\s+'([^']+)'/g;
  const bare = /(?:^|\n)\s*import\s+'([^']+)'/g;
  const dynamic = /\bimport\(\s*'([^']+)'/g;
  return [statements, bare, dynamic]
    .flatMap((pattern) => [...code.matchAll(pattern)].map(([, name]) => name!))
    .map((name) => ({
      name,
      target: name.startsWith('.') ? join(dirname(path), name).replaceAll('\\', '/') : undefined,
    }));
}

/** Without those of types. */
function importsAtRunTime(path: string, code: string): Import[] {
  return importsOf(path, code.replace(/(^|\n)\s*(?:import|export) type\b[^;]*;/g, '$1'));
}

function mayImport({ path, part }: Source, imported: string): boolean {
  return [MAY_IMPORT[part], MAY_ALSO_IMPORT[path]].some((allowed) => allowed?.includes(imported));
}

function pathProblem(name: string, target: string): string | undefined {
  if (!name.endsWith('.ts') && !target.startsWith('bin/')) return 'relative imports end in .ts.';
  return existsSync(join(ROOT, target)) ? undefined : 'there is no such file.';
}

function packageProblem(name: string, { path }: Source): string | undefined {
  if (name.startsWith('node:')) return undefined;
  const [scope = '', rest = ''] = name.split('/');
  const wanted = scope.startsWith('@') ? `${scope}/${rest}` : scope;
  if (wanted in PACKAGE.dependencies) return undefined;
  if (!(wanted in PACKAGE.devDependencies)) return `package.json does not name ${wanted}.`;
  const isTest = path.startsWith('test/') || isForTests(path);
  const isInside = BUNDLED.includes(wanted) && !outsideOfProgram().has(path);
  return isTest || isInside ? undefined : `${wanted} is a dev dependency, and this file runs without those.`;
}

/** What is published beside the program, with no package inside. */
const outsideOfProgram = once(
  () => new Set(Object.values(PORTABLE_ENTRIES).flatMap((entry) => [...reachable(entry, importsAtRunTime)])),
);

/** Tests, and what only tests use. */
function isForTests(path: string): boolean {
  return path.endsWith('.test.ts') || isHelper(path);
}

function isHelper(path: string): boolean {
  return path.endsWith('/testing.ts');
}

function reachable(entry: string, importsIn = importsOf): Set<string> {
  const byPath = new Map(sources().map(({ path, code }) => [path, importsIn(path, code)]));
  const reached = new Set<string>();
  const visit = (path: string): void => {
    if (reached.has(path)) return;
    reached.add(path);
    for (const { target } of byPath.get(path) ?? []) if (target) visit(target);
  };
  visit(entry);
  return reached;
}
