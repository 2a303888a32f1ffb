import { type Command, Option } from 'commander';
import type { Variable } from '../../capabilities/settings.ts';
import { BadConfig, type Config, readConfig, VARIABLES } from '../../config.ts';
import type { RunningHost } from '../../host.ts';
import { type Cancel, CorrectedClock } from '../../system/clock.ts';
import type { Log } from '../../system/log.ts';
import { collectGarbageWhenIdle } from '../../system/memory.ts';
import { realClock, realIds, realLog } from '../../system/real.ts';
import { startFailure } from '../start-failure.ts';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

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
  const config = readConfigOrFail(
    Object.entries(flags).filter(([name]) => command.getOptionValueSource(name) === 'cli'),
  );
  if (!config) return;
  const log = await realLog(config.logLevel, config.prettyLog ?? process.stdout.isTTY);
  if (config.conformance)
    log.warn({}, 'CAPSTAN_CONFORMANCE is on: test endpoints are open, do not use this host for real work');
  try {
    // Loaded late, so that `serve --help` and configuration errors are fast.
    const { startHost } = await import('../../host.ts');
    const clock = new CorrectedClock(new CorrectedClock(realClock, config.clockOffsetMs));
    const host = await startHost(config, { clock, ids: realIds(clock), log });
    // Before it says that it listens: whoever reads that may stop it at once.
    stopOnSignal(host, log, collectGarbageWhenIdle(host.isIdle, realClock));
    if (host.firstKey) process.stdout.write(firstSteps(host.url, host.firstKey));
    process.stdout.write(`listening on ${host.url}\n`);
  } catch (error) {
    fail(`Capstan could not start: ${startFailure(error as Error, config)}`, EXIT_FAILED);
  }
}

function readConfigOrFail(flags: [name: string, value: string | boolean][]): Config | undefined {
  try {
    const given = flags.map(([name, value]) => [name, typeof value === 'boolean' ? String(Number(value)) : value]);
    return readConfig(Object.fromEntries(given));
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

function firstSteps(url: string, key: string): string {
  return `
Created the tenant "default" with this owner key. Store it now; it is not shown again.

  ${key}

Start the example workflow, with the command or with curl:

  CAPSTAN_URL=${url} CAPSTAN_KEY=${key} \\
    npx capstan runs start support-triage --set subject='I cannot log in' --set plan=pro --wait

  curl -X POST ${url}/v1/runs -H 'Authorization: Bearer ${key}' \\
    -H 'Content-Type: application/json' -d '{"workflowId":"support-triage","inputs":{"subject":"I cannot log in","plan":"pro"}}'

`;
}

/** Ctrl-C is somebody who waits; whoever sends SIGTERM has requests to lead elsewhere first. */
async function stop(host: RunningHost, signal: NodeJS.Signals): Promise<void> {
  if (signal === 'SIGTERM') await host.drain();
  await host.stop();
}

/** The first signal stops the host gracefully, a second one exits immediately. */
function stopOnSignal(host: RunningHost, log: Log, stopCollecting: Cancel): void {
  let isStopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isStopping) process.exit(EXIT_FAILED);
    isStopping = true;
    stopCollecting();
    log.info({ signal }, 'stopping');
    stop(host, signal).catch((error) => {
      log.error({ err: error }, 'graceful stop failed');
      process.exitCode = EXIT_FAILED;
    });
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
}
