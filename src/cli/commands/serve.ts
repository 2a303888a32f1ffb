import { type Command, Option } from 'commander';
import type { Variable } from '../../capabilities/settings.ts';
import { BadConfig, type Config, readConfig, VARIABLES } from '../../config.ts';
import type { RunningHost } from '../../host.ts';
import type { Cancel } from '../../system/clock.ts';
import type { Log } from '../../system/log.ts';
import { collectWhenIdle } from '../../system/memory.ts';
import { realClock, realIds, realLog } from '../../system/real.ts';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

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
    'Environment only:',
    ...lines,
    '',
    'Example:',
    '  $ capstan serve --port 8080 --data /var/lib/capstan',
  ].join('\n');
}

async function serve(flags: Record<string, string | boolean>, command: Command): Promise<void> {
  const config = readOrComplain(Object.entries(flags).filter(([name]) => command.getOptionValueSource(name) === 'cli'));
  if (!config) return;
  const log = await realLog(config.logLevel, config.prettyLog);
  if (config.conformance)
    log.warn({}, 'conformance switch on: test surfaces are open, keep real work away from this host');
  try {
    // Other commands need none of it and should not wait for it.
    const { startHost } = await import('../../host.ts');
    const host = await startHost(config, { clock: realClock, ids: realIds(), log });
    if (host.firstKey) process.stdout.write(firstSteps(host.url, host.firstKey));
    process.stdout.write(`listening on ${host.url}\n`);
    stopOnSignal(host, log, collectWhenIdle(host.isIdle, realClock));
  } catch (error) {
    complain(`Capstan cannot start. ${(error as Error).message}`, EXIT_FAILED);
  }
}

function readOrComplain(flags: [name: string, value: string | boolean][]): Config | undefined {
  try {
    const given = flags.map(([name, value]) => [name, typeof value === 'boolean' ? String(Number(value)) : value]);
    return readConfig(Object.fromEntries(given));
  } catch (error) {
    if (!(error instanceof BadConfig)) throw error;
    complain(`Capstan cannot start:\n${error.problems.map((problem) => `  - ${problem}`).join('\n')}`, EXIT_USAGE);
    return undefined;
  }
}

function complain(message: string, exitCode: number): void {
  process.stderr.write(`${message}\n`);
  process.exitCode = exitCode;
}

function firstSteps(url: string, key: string): string {
  return `
This is a first start: tenant "default" was made, with this owner key. It is shown only now.

  ${key}

Start the example workflow:

  curl -X POST ${url}/v1/runs -H 'Authorization: Bearer ${key}' \\
    -H 'Content-Type: application/json' -d '{"workflowId":"support-triage","inputs":{"subject":"I cannot log in","plan":"pro"}}'

`;
}

/** The first signal stops in good order, a second one at once. */
function stopOnSignal(host: RunningHost, log: Log, stopCollecting: Cancel): void {
  let isStopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isStopping) process.exit(EXIT_FAILED);
    isStopping = true;
    stopCollecting();
    log.info({ signal }, 'stopping');
    host.stop().catch((error) => {
      log.error({ err: error }, 'stopping failed');
      process.exitCode = EXIT_FAILED;
    });
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
}
