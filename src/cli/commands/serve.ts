import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Command, Option } from 'commander';
import type { ownProject } from '../../build/own-project.ts';
import type { Variable } from '../../capabilities/settings.ts';
import { BadConfig, type Config, readConfig, type SettingTexts, VARIABLES } from '../../config.ts';
import { EXAMPLES } from '../../examples.ts';
import type { RunningHost } from '../../host.ts';
import { type Cancel, CorrectedClock } from '../../system/clock.ts';
import type { Log } from '../../system/log.ts';
import { collectGarbageWhenIdle } from '../../system/memory.ts';
import { realClock, realIds } from '../../system/real.ts';
import { CANNOT_LISTEN } from '../exit.ts';
import { startCommand } from '../start-command.ts';
import { isListenFailure, startFailure } from '../start-failure.ts';
import { onStopSignal } from '../stop-signals.ts';

/** The tenant that the first start creates. */
const FIRST_TENANT = 'default';
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
/** The answers of the model that stands in for a real one. */
const SCRIPT = 'model.json';

/** Adds the flags, help and action of `capstan serve`, from the table of settings. */
export function setUpServe(command: Command): void {
  for (const { flag, meaning, variable } of settings()) {
    if (flag) command.addOption(new Option(flag, `${meaning} [${variable}]`));
  }
  command.addHelpText('after', variablesHelp());
  command.action(serve);
}

function settings(): Variable[] {
  return Object.values(VARIABLES);
}

function variablesHelp(): string {
  const shown = settings().filter(({ flag }) => !flag);
  const width = Math.max(...shown.map(({ variable }) => variable.length)) + 2;
  const lines = shown.map(({ variable, meaning }) => `  ${variable.padEnd(width)}${meaning}`);
  return [
    '',
    'Environment variables without a flag:',
    ...lines,
    '',
    'Example:',
    '  $ capstan serve --port 8080 --data /var/lib/capstan',
  ].join('\n');
}

async function serve(flags: Record<string, string | boolean>, command: Command): Promise<void> {
  const given = Object.entries(flags).filter(([name]) => command.getOptionValueSource(name) === 'cli');
  const texts = given.map(([name, value]) => [name, typeof value === 'boolean' ? String(Number(value)) : value]);
  const settings: SettingTexts = Object.fromEntries(texts);
  const first = readConfigOrFail(settings);
  const project = first && (await loadProjectOrFail(first));
  if (!first || project === 'failed') return;
  const config = project ? readConfigOrFail(settings, defaultsOf(project, first)) : first;
  if (!config) return;
  // Loaded late, so that `serve --help`, configuration errors and all other commands are fast.
  const { realLog } = await import('../../system/real-log.ts');
  const log = await realLog(config.logLevel, config.prettyLog ?? process.stdout.isTTY);
  if (config.conformance)
    log.warn({}, 'CAPSTAN_CONFORMANCE is on: test endpoints are open; do not use this host in production');
  try {
    const { startHost } = await import('../../host.ts');
    const clock = new CorrectedClock(new CorrectedClock(realClock, config.clockOffsetMs));
    const extra = project ? [project.capability] : [];
    const host = await startHost(config, { clock, ids: realIds(clock), log }, extra);
    // Before it says that it listens: whoever reads that may stop it at once.
    stopOnSignal(host, log, collectGarbageWhenIdle(host.isIdle, realClock));
    void host.storeStopped?.then((failure) => endAtOnce(failure, log));
    process.stdout.write(host.firstKey ? firstSteps(host.url, host.firstKey, project) : lostKeyHint(config));
    process.stdout.write(`listening on ${host.url}\n`);
  } catch (error) {
    const failure = error as Error;
    const isForDev = config.isDev && isListenFailure(failure, config);
    fail(`Capstan could not start: ${startFailure(failure, config)}`, isForDev ? CANNOT_LISTEN : EXIT_FAILED);
  }
}

/** A project that is ready to be mounted. */
interface LoadedProject {
  readonly capability: ReturnType<typeof ownProject>;
  readonly settings: SettingTexts;
  /** How the first of its workflows is started. */
  readonly start: string | undefined;
}

async function loadProjectOrFail({
  projectFolder,
  sharedTenant = FIRST_TENANT,
}: Config): Promise<LoadedProject | 'failed' | undefined> {
  if (projectFolder === undefined) return undefined;
  const { loadProject, ownProject, ProjectProblem, settingsOf } = await import('../../build/projects.ts');
  try {
    const project = await loadProject(projectFolder);
    const [first] = project.workflows;
    const start = first && startCommand(first);
    return { capability: ownProject(project, sharedTenant), settings: settingsOf(project), start };
  } catch (error) {
    if (!(error instanceof ProjectProblem)) throw error;
    fail(`Capstan could not load the project:\n${error.message}`, EXIT_FAILED);
    return 'failed';
  }
}

/** What is set for those who develop a project, unless they or the project say otherwise. */
function defaultsOf({ settings: ofProject }: LoadedProject, { isDev, projectFolder }: Config): SettingTexts {
  if (!isDev) return ofProject;
  const own = resolve(projectFolder!, SCRIPT);
  const script = existsSync(own) ? own : fileURLToPath(new URL(`project/${SCRIPT}`, EXAMPLES));
  const models = JSON.stringify([{ provider: 'scripted', kind: 'scripted', script, models: ['scripted'] }]);
  return { log: 'pretty', drainMs: '0', models, ...ofProject };
}

function readConfigOrFail(flags: SettingTexts, defaults: SettingTexts = {}): Config | undefined {
  try {
    return readConfig(flags, undefined, [], defaults);
  } catch (error) {
    if (!(error instanceof BadConfig)) throw error;
    fail(
      `Capstan could not start with these settings:\n${error.problems.map((problem) => `  - ${problem}`).join('\n')}`,
      EXIT_USAGE,
    );
    return undefined;
  }
}

function fail(message: string, exitCode: number): void {
  process.stderr.write(`${message}\n`);
  process.exitCode = exitCode;
}

function firstSteps(url: string, key: string, project: LoadedProject | undefined): string {
  const created = `
Created the tenant "${FIRST_TENANT}" with this owner key. Store it now; it is not shown again.

  ${key}
`;
  if (project) {
    // Without --wait: the workflow of a project may wait for days.
    const start = project.start ?? 'workflows list';
    return `${created}
Use it with the command:

  CAPSTAN_URL=${url} CAPSTAN_KEY=${key} npx capstan ${start}

`;
  }
  return `${created}
Start the example workflow, with the command or with curl:

  CAPSTAN_URL=${url} CAPSTAN_KEY=${key} \\
    npx capstan runs start support-triage --set subject='I cannot log in' --set plan=pro --wait

  curl -X POST ${url}/v1/runs -H 'Authorization: Bearer ${key}' \\
    -H 'Content-Type: application/json' -d '{"workflowId":"support-triage","inputs":{"subject":"I cannot log in","plan":"pro"}}'

`;
}

/**
 * What to do if the key of the first start is lost; nothing where people are let in by the configuration, or where the
 * host starts again with every change of a file.
 */
function lostKeyHint({ apiKeys, oidc, isDev, databaseUrl, dataFolder }: Config): string {
  if (apiKeys.length > 0 || oidc || isDev) return '';
  const recover = 'npx capstan keys recover';
  const otherwise =
    databaseUrl === undefined
      ? `stop the host and run: ${recover} --data ${dataFolder}`
      : `run this with the same DATABASE_URL: ${recover}`;
  return `The keys of this host were printed when they were made. If all are lost, ${otherwise}\n`;
}

/** Ctrl-C is somebody who waits; whoever sends SIGTERM has requests to lead elsewhere first. */
async function stop(host: RunningHost, signal: NodeJS.Signals): Promise<void> {
  if (signal === 'SIGTERM') await host.drain();
  await host.stop();
}

/** Nothing can be stored any more, so there is nothing to stop gracefully. Whoever watches over the host starts it again. */
function endAtOnce(failure: Error, log: Log): never {
  log.error({ err: failure }, 'the store has stopped; the host ends');
  process.stderr.write(`Capstan ends: ${failure.message}\n`);
  process.exit(EXIT_FAILED);
}

function stopOnSignal(host: RunningHost, log: Log, stopCollecting: Cancel): void {
  onStopSignal(['SIGTERM', 'SIGINT'], (signal) => {
    stopCollecting();
    log.info({ signal }, 'stopping');
    stop(host, signal).then(
      () => log.info({}, 'stopped'),
      (error) => {
        log.error({ err: error }, 'graceful stop failed');
        process.exitCode = EXIT_FAILED;
      },
    );
  });
}
