import { type ChildProcess, spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inject } from 'vitest';
import { Api } from './api.ts';
import { HOST_SETTINGS, KEYS } from './host.ts';
import { recorder } from './recorder/recorder.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const START_MAX_MS = 60_000;
const RUN_MAX_MS = 45_000;

/** A host in a process of its own, as an operator starts it. */
export interface HostProcess {
  readonly url: string;
  readonly pid: number;
  as(who: keyof typeof KEYS): Api;
  /** Everything that it has printed so far. */
  output(): string;
  signal(name: NodeJS.Signals): void;
  /** Settles with the exit code, or the name of the signal that ended it. */
  readonly exit: Promise<number | NodeJS.Signals>;
}

export interface ProcessEnd {
  readonly code: number | NodeJS.Signals;
  readonly output: string;
}

type Environment = Record<string, string>;

/** What is run, and where. */
export interface Program {
  readonly path: string;
  readonly folder: string;
}

/** What the sources of this checkout make: the program, or another one beside it. */
export const bundled = (name = 'main'): Program => ({ path: bundledFile(name), folder: ROOT });

/** A file of the bundle. */
export const bundledFile = (name: string): string => join(dirname(inject('program')), `${name}.js`);

/** Processes that load the same files share what Node compiled of them; the packed program has no bundle of the tests. */
export function compileCache(): Record<string, string> {
  const program: string | undefined = inject('program');
  return program === undefined ? {} : { NODE_COMPILE_CACHE: join(dirname(program), 'compiled') };
}

/** Starts a host and waits until it listens. */
export async function spawnHost(environment: Environment, program = bundled()): Promise<HostProcess> {
  const started = launch(program, ['serve'], { ...HOST_SETTINGS, ...environment });
  const url = await listening(started);
  recorder.watch(url);
  return {
    url,
    pid: started.child.pid!,
    as: (who) => new Api(url, KEYS[who].key),
    output: started.output,
    signal: (name) => started.child.kill(name),
    exit: started.exit,
  };
}

/** Runs the program to its end; one that does not come to it is killed. */
export async function runProgram(
  args: readonly string[],
  environment: Environment,
  program = bundled(),
): Promise<ProcessEnd> {
  const { child, exit, output } = launch(program, args, environment);
  const giveUp = setTimeout(() => child.kill('SIGKILL'), RUN_MAX_MS);
  const code = await exit;
  clearTimeout(giveUp);
  return { code, output: output() };
}

interface Launched {
  readonly child: ChildProcess;
  readonly exit: Promise<number | NodeJS.Signals>;
  output(): string;
  onOutput(listener: () => void): void;
}

function launch({ path, folder }: Program, args: readonly string[], environment: Environment): Launched {
  const { PATH = '' } = process.env;
  const env = { PATH, ...compileCache(), ...environment };
  const child = spawn(process.execPath, [path, ...args], { cwd: folder, env });
  let text = '';
  let listener = (): void => {};
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      listener();
    });
  }
  return {
    child,
    exit: new Promise((resolve) => child.on('close', (code, signal) => resolve(code ?? signal!))),
    output: () => text,
    onOutput: (next) => {
      listener = next;
    },
  };
}

function listening({ child, exit, output, onOutput }: Launched): Promise<string> {
  return new Promise((resolve, reject) => {
    const giveUp = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`the host does not listen:\n${output()}`));
    }, START_MAX_MS);
    const look = (): void => {
      const url = /^listening on (http:\S+)$/m.exec(output())?.[1];
      if (url === undefined) return;
      clearTimeout(giveUp);
      resolve(url);
    };
    onOutput(look);
    void exit.then((code) => {
      clearTimeout(giveUp);
      reject(new Error(`the host ended with ${code}:\n${output()}`));
    });
  });
}
