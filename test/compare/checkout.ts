import { spawn } from 'node:child_process';
import { globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { ROLES, type Role } from './roles.ts';

/** How a host is started: as operators do, or with the conformance switch on. */
export type Mode = 'plain' | 'conformance';

/** A host in a process of its own, with a data folder that is removed when it stops. */
export interface RunningHost {
  readonly url: string;
  readonly dataFolder: string;
  /** Ends the process and returns its database schema, one statement for each table and index. */
  stop(): Promise<string[]>;
}

/** What a command printed, and its exit code. */
export interface CommandResult {
  readonly code: number | null;
  readonly output: string;
}

const START_MAX_MS = 30_000;
const COMMAND_MAX_MS = 30_000;
const MODELS = [{ provider: 'play', kind: 'scripted', script: 'examples/triage/model.json', models: ['small'] }];

const SETTINGS: Record<Mode, Record<string, string>> = {
  plain: { CAPSTAN_PROPOSALS: 'approval-gate' },
  conformance: { CAPSTAN_CONFORMANCE: '1', CAPSTAN_PROPOSALS: 'direct-rbac' },
};

/** Starts a host from the sources of a checkout and waits until it listens. */
export async function startHost(checkout: string, mode: Mode): Promise<RunningHost> {
  const dataFolder = mkdtempSync(join(tmpdir(), 'capstan-compare-'));
  const child = launch(checkout, ['src/cli/main.ts', 'serve'], {
    PORT: '0',
    CAPSTAN_DATA: dataFolder,
    CAPSTAN_LOG: 'warn',
    CAPSTAN_API_KEYS: JSON.stringify(Object.values(ROLES)),
    CAPSTAN_MODELS: JSON.stringify(MODELS),
    ...SETTINGS[mode],
  });
  const url = await child.printed(/^listening on (http:\S+)$/m, START_MAX_MS);
  return {
    url,
    dataFolder,
    stop: async () => {
      child.kill('SIGTERM');
      await child.exit;
      const schema = readSchema(dataFolder);
      rmSync(dataFolder, { recursive: true });
      return schema;
    },
  };
}

/** Runs the `capstan` command of a checkout to its end, against a host if one is given. */
export function runCapstan(
  checkout: string,
  args: readonly string[],
  target?: { readonly url: string; readonly role: Role },
): Promise<CommandResult> {
  return runNode(checkout, ['src/cli/main.ts', ...args], target);
}

/** Runs a program of a checkout with the checkout's own Node. */
export async function runNode(
  checkout: string,
  args: readonly string[],
  target?: { readonly url: string; readonly role: Role },
): Promise<CommandResult> {
  const environment = target ? { CAPSTAN_URL: target.url, CAPSTAN_KEY: ROLES[target.role].key } : {};
  const child = launch(checkout, args, environment);
  const timer = setTimeout(() => child.kill('SIGKILL'), COMMAND_MAX_MS);
  const code = await child.exit;
  clearTimeout(timer);
  return { code, output: child.output() };
}

interface Launched {
  readonly exit: Promise<number | null>;
  kill(signal: NodeJS.Signals): void;
  output(): string;
  /** Waits for a line on its output and returns the first group of the pattern. */
  printed(pattern: RegExp, maxMs: number): Promise<string>;
}

function launch(checkout: string, args: readonly string[], environment: Record<string, string>): Launched {
  const { PATH = '' } = process.env;
  const node = join(checkout, 'node_modules', '.bin', 'node');
  const child = spawn(node, args, { cwd: checkout, env: { PATH, ...environment } });
  let text = '';
  let onText = (): void => {};
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      onText();
    });
  }
  const exit = new Promise<number | null>((resolve, reject) => child.on('close', resolve).on('error', reject));
  return {
    exit,
    kill: (signal) => child.kill(signal),
    output: () => text,
    printed: (pattern, maxMs) =>
      new Promise((resolve, reject) => {
        const fail = (why: string): void => {
          child.kill('SIGKILL');
          reject(new Error(`${checkout}: ${why}\n${text}`));
        };
        const timer = setTimeout(() => fail('the host does not listen'), maxMs);
        onText = () => {
          const found = pattern.exec(text)?.[1];
          if (found === undefined) return;
          clearTimeout(timer);
          resolve(found);
        };
        void exit.then((code) => fail(`the process ended with ${code}`));
      }),
  };
}

/** The statements that made the database, without differences in white space. */
function readSchema(folder: string): string[] {
  const [file] = globSync('*.db', { cwd: folder });
  if (file === undefined) throw new Error(`no database in ${folder}`);
  const database = new DatabaseSync(join(folder, file));
  const rows = database.prepare('SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name').all();
  database.close();
  return rows.map(({ sql }) => String(sql).replace(/\s+/g, ' '));
}
