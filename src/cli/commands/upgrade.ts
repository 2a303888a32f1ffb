import { resolve } from 'node:path';
import type { CommandGroup, CommandSpec, Context } from '../command.ts';
import { EXIT, type ExitCode } from '../exit.ts';
import type { Effect, UpgradeReport } from '../upgrade-report.ts';
import { stringOption } from '../values.ts';

const MEANING: Readonly<Record<Effect, string>> = {
  beside: 'older hosts go on meanwhile',
  pause: 'older hosts go on; their writes wait while it builds an index',
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
  async run(context, { options }) {
    const { reportOnUpgrade } = await import('../upgrade-report.ts');
    const { environment } = context.terminal;
    const url = stringOption(options.databaseUrl) ?? environment.DATABASE_URL;
    const folder = resolve(stringOption(options.data) ?? environment.CAPSTAN_DATA ?? './data');
    try {
      return show(context, await reportOnUpgrade({ url, folder }));
    } catch (error) {
      context.terminal.err(`The store cannot be looked at: ${(error as Error).message}\n`);
      return EXIT.unreachable;
    }
  },
};

function show(context: Context, report: UpgradeReport): ExitCode {
  const { version, isPossible, problem, steps, hosts } = report;
  const { paint } = context;
  const mark = isPossible ? paint('green', 'ok ') : paint('red', 'BAD');
  context.show(report, () => [
    `${mark}  ${problem ?? `capstan ${version} can be started on this store.`}`,
    ...(steps.length === 0 ? ['     The schema is up to date.'] : ['     A start applies:']),
    ...steps.map(({ id, effect }) => `       ${id.padEnd(20)} ${MEANING[effect]}`),
    ...(hosts.length === 0 ? ['     No host is running on it.'] : ['     Running now:']),
    ...hosts.map(({ hostId, version }) => `       ${hostId}  ${version ?? 'an older version'}`),
  ]);
  return isPossible ? EXIT.done : EXIT.refused;
}

/** `capstan upgrade …`. */
export const upgrade: CommandGroup = {
  name: 'upgrade',
  summary: 'Upgrade hosts one after the other',
  commands: [check],
};
