import { resolve } from 'node:path';
import type { CommandSpec, Context } from '../command.ts';
import { askForBackup } from '../control-client.ts';
import { EXIT, type ExitCode, UsageError } from '../exit.ts';
import type { StoreReport } from '../store-report.ts';

const DATA_FLAG = { '--data <folder>': 'data folder of the embedded store (CAPSTAN_DATA, or ./data)' };

function folderOf({ terminal }: Context, data: unknown): string {
  return resolve(typeof data === 'string' ? data : (terminal.environment.CAPSTAN_DATA ?? './data'));
}

/** `capstan backup`; exits with 1 when the backup fails or is not sound. */
export const backup: CommandSpec = {
  name: 'backup',
  takes: '<file>',
  summary: 'Back the embedded store up into a new file, also while the host runs, and verify it',
  flags: DATA_FLAG,
  example: 'backup capstan-monday.db --data ./data',
  json: 'result',
  async run(context, { args: [path], options }) {
    const { backUpFolder, reportOnBackup } = await import('../store-report.ts');
    if (context.terminal.environment.DATABASE_URL) {
      throw new UsageError('DATABASE_URL is set: back PostgreSQL up with its own tools, such as pg_dump.');
    }
    const file = resolve(path!);
    const folder = folderOf(context, options.data);
    const answer = await askForBackup(folder, file);
    try {
      if (answer === undefined) await backUpFolder(folder, file);
      else if (answer.status !== 200) return fail(context, answer.message);
      return show(context, file, await reportOnBackup(file));
    } catch (error) {
      return fail(context, (error as Error).message);
    }
  },
};

/** `capstan verify`; exits with 1 when something is damaged. */
export const verify: CommandSpec = {
  name: 'verify',
  takes: '[file]',
  summary: 'Check every page, every run and the audit log of a store or of a backup',
  flags: { ...DATA_FLAG, '--database-url <url>': 'check this PostgreSQL database (DATABASE_URL)' },
  example: 'verify capstan-monday.db',
  json: 'result',
  async run(context, { args: [path], options }) {
    const { reportOnBackup, reportOnFolder, reportOnPostgres } = await import('../store-report.ts');
    const url = options.databaseUrl ?? (path === undefined ? context.terminal.environment.DATABASE_URL : undefined);
    const folder = folderOf(context, options.data);
    try {
      if (path !== undefined) return show(context, path, await reportOnBackup(resolve(path)));
      if (typeof url === 'string') return show(context, 'the database', await reportOnPostgres(url));
      return show(context, folder, await reportOnFolder(folder));
    } catch (error) {
      return fail(context, (error as Error).message);
    }
  },
};

function fail({ terminal }: Context, message: string): ExitCode {
  terminal.err(`${message}\n`);
  return EXIT.refused;
}

function show(context: Context, what: string, report: StoreReport): ExitCode {
  const { logs, chains, problems, isSound } = report;
  const { paint } = context;
  const bad = (text: string): string => `${paint('red', 'BAD')}  ${text}`;
  context.show({ what, ...report }, () => [
    `${isSound ? paint('green', 'ok ') : paint('red', 'BAD')}  ${what}`,
    ...problems.map(bad),
    ...(logs?.damaged ?? []).map(({ runId, problem }) => bad(`${runId}: ${problem}`)),
    ...(chains?.broken ?? []).map(({ tenant, atSeq }) => bad(`audit log of ${tenant}: broken at ${atSeq}`)),
    ...(logs
      ? [`     ${logs.runs} runs with ${logs.events} events, ${logs.withoutDigest} of them without a digest`]
      : []),
    ...(chains ? [`     ${chains.entries} audit entries`] : []),
  ]);
  return isSound ? EXIT.done : EXIT.refused;
}
