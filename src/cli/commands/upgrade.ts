import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { CommandGroup, CommandSpec, Context } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../exit.ts';
import type { Effect, UpgradeReport } from '../upgrade-report.ts';
import { stringOption } from '../values.ts';

const MEANING: Readonly<Record<Effect, string>> = {
  beside: 'older hosts continue meanwhile',
  pause: 'older hosts continue; their writes wait while it builds an index',
  alone: 'older hosts fail afterwards: stop all of them first',
};

/** `capstan upgrade check`; exits with 1 if this version must not be started now, and with 4 without an answer. */
const check: CommandSpec = {
  name: 'check',
  summary: 'Say whether this version fits the store and its running hosts; changes nothing',
  flags: {
    '--data <folder>': 'data folder of the embedded store (CAPSTAN_DATA, or ./data)',
    '--database-url <url>': 'postgres://… URL of the store (DATABASE_URL)',
  },
  example: 'upgrade check',
  json: 'result',
  async run(context, { options }) {
    const { reportOnUpgrade } = await import('../upgrade-report.ts');
    const { environment } = context.terminal;
    const url = stringOption(options.databaseUrl) ?? environment.DATABASE_URL;
    const folder = resolve(stringOption(options.data) ?? environment.CAPSTAN_DATA ?? './data');
    if (url === undefined && !existsSync(folder)) {
      throw new UsageError(
        `There is no data folder ${folder}. Name the folder of the host with --data (CAPSTAN_DATA), or its database with --database-url.`,
      );
    }
    try {
      const report = await reportOnUpgrade({ url, folder });
      return show(context, report, url === undefined ? FOLDER_ADVICE : []);
    } catch (error) {
      context.terminal.err(`The store cannot be looked at: ${(error as Error).message}\n`);
      return EXIT.unreachable;
    }
  },
};

/** A data folder has one host at a time. */
const FOLDER_ADVICE = ['     Stop it before you start this version: only one host can use a data folder.'];

function show(context: Context, report: UpgradeReport, advice: readonly string[]): ExitCode {
  const { version, isPossible, problem, steps, hosts } = report;
  const { paint } = context;
  const mark = isPossible ? paint('green', 'ok ') : paint('red', 'BAD');
  context.show(report, () => [
    `${mark}  ${problem ?? `capstan ${version} can be started on this store.`}`,
    ...(steps.length === 0 ? ['     The schema is up to date.'] : ['     A start applies:']),
    ...steps.map(({ id, effect }) => `       ${id.padEnd(20)} ${MEANING[effect]}`),
    ...(hosts.length === 0 ? ['     No host is running on it.'] : ['     Running now:']),
    ...hosts.map(({ hostId, version }) => `       ${hostId}  ${version ?? 'an older version'}`),
    ...(hosts.length === 0 ? [] : advice),
  ]);
  return isPossible ? EXIT.done : EXIT.refused;
}

/** `capstan upgrade …`. */
export const upgrade: CommandGroup = {
  name: 'upgrade',
  summary: 'Upgrade hosts one after the other',
  commands: [check],
};
