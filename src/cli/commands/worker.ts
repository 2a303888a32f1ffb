import type { CommandSpec } from '../command.ts';
import { currentLogin } from '../credentials.ts';
import { EXIT, UsageError } from '../exit.ts';
import { onStopSignal } from '../stop-signals.ts';
import { listOption, stringOption } from '../values.ts';

/** `capstan worker`; ends with Ctrl-C or SIGTERM, once the attempts that it has are made. */
export const worker: CommandSpec = {
  name: 'worker',
  takes: '[folder]',
  summary: 'Run a worker that executes the nodes of a project or of signed packs',
  flags: {
    '--project <folder>': 'folder of the project (the current one)',
    '--pack <folder...>': 'folder of a signed pack of nodes, instead of a project',
    '--trust <key...>': 'public key, or its file, that packs may be signed with',
    '--pool <name>': 'pool that its types belong to (that of the key)',
    '--name <name>': 'name of the worker, for people',
    '--concurrency <number>': 'attempts at the same time (4)',
    '--lease <seconds>': 'a worker that is silent for longer loses its attempts (30)',
  },
  example: 'worker --project my-agent --pool billing',
  json: 'nothing',
  async run(context, { args: [path], options }) {
    const { url, key } = await currentLogin(context.terminal.environment);
    if (key === undefined) throw new UsageError('Set CAPSTAN_KEY to a key with the scope workers:serve.');
    const pool = stringOption(options.pool);
    const name = stringOption(options.name);
    const concurrency = wholeNumber('--concurrency', options.concurrency);
    const leaseSeconds = wholeNumber('--lease', options.lease);
    // Imported late: it loads projects, which would slow down the other commands.
    const { workForPacks, workForProject } = await import('../project-worker.ts');
    const worker = {
      url,
      key,
      ...(pool === undefined ? {} : { pool }),
      ...(name === undefined ? {} : { name }),
      ...(concurrency === undefined ? {} : { concurrency }),
      ...(leaseSeconds === undefined ? {} : { leaseSeconds }),
      signal: AbortSignal.any([context.terminal.interrupted(), terminated()]),
      onLoaded: (types: readonly string[]) =>
        context.note(`Connecting to ${url} for ${types.join(', ')}. Ctrl-C stops.`),
      onReady: (types: readonly string[]) => context.note(`Serving ${types.join(', ')} for ${url}.`),
    };
    const folders = listOption(options.pack);
    const trusted = listOption(options.trust);
    if (folders.length === 0 && trusted.length > 0) throw new UsageError('--trust needs --pack.');
    if (folders.length > 0 && (path ?? options.project) !== undefined) {
      throw new UsageError('A worker serves either packs or a project. Start two workers.');
    }
    if (folders.length > 0) await workForPacks({ ...worker, folders, trusted });
    else await workForProject({ ...worker, folder: stringOption(options.project) ?? path ?? '.' });
    return EXIT.done;
  },
};

function wholeNumber(flag: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  if (/^[1-9]\d{0,4}$/.test(String(value))) return Number(value);
  throw new UsageError(`${flag} must be a number from 1 to 99999.`);
}

/** Aborts when somebody stops the process. */
function terminated(): AbortSignal {
  const controller = new AbortController();
  onStopSignal(['SIGTERM'], () => controller.abort());
  return controller.signal;
}
