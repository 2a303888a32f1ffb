import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import type { Cancel } from '../../system/clock.ts';
import { realClock } from '../../system/real.ts';
import type { CommandSpec, Context } from '../command.ts';
import { CANNOT_LISTEN, EXIT, type ExitCode, UsageError } from '../exit.ts';
import { ENVIRONMENT_FILE, environmentOf } from '../project-environment.ts';
import { onStopSignal } from '../stop-signals.ts';
import { stringOption } from '../values.ts';
import { FileWatch } from '../watch-files.ts';

/** Editors write a file in several steps; the host is restarted once for all of them. */
const QUIET_MS = 150;

/** `capstan dev`; ends with Ctrl-C, or with 1 if its port is taken. */
export const dev: CommandSpec = {
  name: 'dev',
  takes: '[folder]',
  summary: 'Serve a project for development, and again whenever one of its files changes',
  flags: {
    '--port <number>': 'port to listen on (PORT, or 3210)',
    '--data <folder>': 'data folder (CAPSTAN_DATA, or .capstan/data in the project)',
  },
  example: 'dev my-agent',
  json: 'nothing',
  async run(context, { args: [path = '.'], options }) {
    const folder = resolve(path);
    if (!existsSync(folder)) throw new UsageError(`There is no folder ${folder}.`);
    const { CAPSTAN_DATA } = environmentOf(folder, context.terminal);
    const data = resolve(stringOption(options.data) ?? (CAPSTAN_DATA || join(folder, '.capstan', 'data')));
    const port = stringOption(options.port);
    const args = ['serve', '--dev', '--project', folder, '--data', data, ...(port ? ['--port', port] : [])];
    const server = new DevServer(context, args, () => environmentOf(folder, context.terminal));
    server.start();
    const stored = relative(folder, data);
    const watching = new FileWatch(
      folder,
      (name) => isOfProject(name, stored),
      (name) => server.changed(name),
    );
    const code = await server.stopped;
    watching.close();
    return code;
  },
};

/** Whether the code of a project may depend on a file; what is hidden, installed, stored or logged is not of it. */
function isOfProject(name: string, data: string): boolean {
  if (name === ENVIRONMENT_FILE) return true;
  if (name.endsWith('.log')) return false;
  const parts = name.split(sep);
  return (
    !parts.some((part) => part.startsWith('.') || part === 'node_modules') && !`${name}${sep}`.startsWith(data + sep)
  );
}

/** The host of a project in a process of its own: a fresh one knows nothing of the code before. */
class DevServer {
  readonly #context: Pick<Context, 'note'>;
  readonly #args: readonly string[];
  readonly #environment: () => NodeJS.ProcessEnv;
  readonly #stopped = Promise.withResolvers<ExitCode>();
  #child: ChildProcess | undefined;
  #pending: Cancel | undefined;
  /** Resolves when the last restart has come to its end: two at once would leave a host that nobody stops. */
  #restarted: Promise<void> = Promise.resolve();
  #isRestarting = false;
  #isStopping = false;

  constructor(context: Pick<Context, 'note'>, args: readonly string[], environment: () => NodeJS.ProcessEnv) {
    this.#context = context;
    this.#args = args;
    this.#environment = environment;
    onStopSignal(['SIGINT', 'SIGTERM'], (signal) => this.#stop(signal));
  }

  /** The exit code, once it was stopped or has no way to start. */
  get stopped(): Promise<ExitCode> {
    return this.#stopped.promise;
  }

  start(): void {
    const [, program = ''] = process.argv;
    const child = spawn(process.execPath, [...process.execArgv, program, ...this.#args], {
      stdio: 'inherit',
      env: this.#environment(),
    });
    this.#child = child;
    child.once('close', (code) => {
      if (this.#child === child) this.#child = undefined;
      if (this.#isStopping) this.#stopped.resolve(EXIT.done);
      else if (code === CANNOT_LISTEN) this.#stopped.resolve(EXIT.refused);
      else if (!this.#isRestarting) this.#context.note('Waiting for a change.');
    });
  }

  changed(name: string): void {
    this.#pending?.();
    this.#pending = realClock.after(QUIET_MS, () => {
      this.#pending = undefined;
      this.#restarted = this.#restarted.then(() => this.#restart(name));
    });
  }

  async #restart(name: string): Promise<void> {
    if (this.#isStopping) return;
    this.#context.note(`${name} changed: starting again.`);
    const child = this.#child;
    this.#isRestarting = true;
    if (child) {
      child.kill('SIGTERM');
      await once(child, 'close');
    }
    this.#isRestarting = false;
    if (!this.#isStopping) this.start();
  }

  /** A terminal sends Ctrl-C to both processes; a signal to this one alone is handed on. */
  #stop(signal: NodeJS.Signals): void {
    this.#isStopping = true;
    this.#pending?.();
    if (!this.#child) this.#stopped.resolve(EXIT.done);
    else if (signal === 'SIGTERM' || !process.stdin.isTTY) this.#child.kill(signal);
  }
}
