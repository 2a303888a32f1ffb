import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, watch } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import type { Cancel } from '../../system/clock.ts';
import { realClock } from '../../system/real.ts';
import type { CommandSpec, Context } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { stringOption } from '../values.ts';

/** Editors write a file in several steps; the host is restarted once for all of them. */
const QUIET_MS = 150;

/** `capstan dev`; ends with Ctrl-C. */
export const dev: CommandSpec = {
  name: 'dev',
  takes: '[folder]',
  summary: 'Serve a project for development, and again whenever one of its files changes',
  flags: {
    '--port <number>': 'port to listen on (PORT, or 3210)',
    '--data <folder>': 'data folder (CAPSTAN_DATA, or .capstan/data in the project)',
  },
  example: 'dev my-agent',
  async run(context, { args: [path = '.'], options }) {
    const folder = resolve(path);
    if (!existsSync(folder)) throw new UsageError(`There is no folder ${folder}.`);
    const { CAPSTAN_DATA } = context.terminal.environment;
    const data = resolve(stringOption(options.data) ?? CAPSTAN_DATA ?? join(folder, '.capstan', 'data'));
    const port = stringOption(options.port);
    const args = ['serve', '--dev', '--project', folder, '--data', data, ...(port ? ['--port', port] : [])];
    const server = new DevServer(context, args);
    server.start();
    const watcher = watch(folder, { recursive: true }, (_event, name) => {
      if (name !== null && isOfProject(name, relative(folder, data))) server.changed(name);
    });
    await server.stopped;
    watcher.close();
    return EXIT.done;
  },
};

/** Whether the code of a project may depend on a file; what is hidden, installed or stored is not of it. */
function isOfProject(name: string, data: string): boolean {
  const parts = name.split(sep);
  return (
    !parts.some((part) => part.startsWith('.') || part === 'node_modules') && !`${name}${sep}`.startsWith(data + sep)
  );
}

/** The host of a project in a process of its own: a fresh one knows nothing of the code before. */
class DevServer {
  readonly #context: Pick<Context, 'note'>;
  readonly #args: readonly string[];
  readonly #stopped = Promise.withResolvers<void>();
  #child: ChildProcess | undefined;
  #pending: Cancel | undefined;
  #isStopping = false;

  constructor(context: Pick<Context, 'note'>, args: readonly string[]) {
    this.#context = context;
    this.#args = args;
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => this.#stop(signal));
  }

  get stopped(): Promise<void> {
    return this.#stopped.promise;
  }

  start(): void {
    const [, program = ''] = process.argv;
    const child = spawn(process.execPath, [...process.execArgv, program, ...this.#args], { stdio: 'inherit' });
    this.#child = child;
    child.once('close', () => {
      if (this.#child === child) this.#child = undefined;
      if (this.#isStopping) this.#stopped.resolve();
      else if (this.#pending === undefined && this.#child === undefined) this.#context.note('Waiting for a change.');
    });
  }

  changed(name: string): void {
    this.#pending?.();
    this.#pending = realClock.after(QUIET_MS, () => void this.#restart(name));
  }

  async #restart(name: string): Promise<void> {
    const child = this.#child;
    if (child) {
      child.kill('SIGTERM');
      await once(child, 'close');
    }
    this.#pending = undefined;
    if (this.#isStopping) return;
    this.#context.note(`${name} changed: starting again.`);
    this.start();
  }

  /** A terminal sends Ctrl-C to both processes; a signal to this one alone is handed on. */
  #stop(signal: NodeJS.Signals): void {
    this.#isStopping = true;
    this.#pending?.();
    if (!this.#child) this.#stopped.resolve();
    else if (signal === 'SIGTERM' || !process.stdin.isTTY) this.#child.kill(signal);
  }
}
