import { platform } from '../../client/machine.ts';
import type { OpenTask, WorkerType } from '../../protocol/running/workers.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT } from '../exit.ts';
import { formatDuration, table } from '../text.ts';

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'List the node types of workers, when a worker last asked for each, and the attempts that are open',
  example: 'workers list',
  async run(context) {
    const client = await context.client();
    const [{ items: types }, { items: tasks }] = await Promise.all([
      client.listWorkerTypes(),
      client.listWorkerTasks(),
    ]);
    context.show(
      { types, tasks },
      () => [
        ...table(
          ['TYPE', 'POOL', 'WORKER SEEN', 'WAITING', 'AT WORK'],
          types.map(typeRow),
          'No worker has declared a node type. Start one with: capstan worker --project <folder>',
        ),
        ...(tasks.length === 0
          ? []
          : ['', ...table(['RUN', 'NODE', 'TYPE', 'STATE', 'FOR', 'WORKER'], tasks.map(taskRow))]),
        ...unserved(types),
      ],
      () => types.map(({ typeId }) => typeId),
    );
    return EXIT.done;
  },
};

function ago(time: string): string {
  return formatDuration(platform.now() - Date.parse(time));
}

function typeRow({ typeId, pool, seenAt, waiting, leased }: WorkerType): unknown[] {
  return [typeId, pool, seenAt === undefined ? 'never' : `${ago(seenAt)} ago`, waiting ?? 0, leased ?? 0];
}

function taskRow({ runId, nodeId, typeId, state, since, worker, progress }: OpenTask): unknown[] {
  const at = state === 'leased' ? 'running' : state;
  return [runId, nodeId, typeId, at, ago(since), [worker, progress].filter((part) => part !== undefined).join(': ')];
}

/** The types whose attempts wait, and how to serve them. */
function unserved(types: readonly WorkerType[]): string[] {
  const waiting = types.filter((type) => (type.waiting ?? 0) > 0).map(({ typeId }) => typeId);
  if (waiting.length === 0) return [];
  return ['', `Attempts wait for a worker of ${waiting.join(', ')}. Start one with: capstan worker --project <folder>`];
}

/** `capstan workers`. */
export const workers: CommandGroup = {
  name: 'workers',
  summary: 'Show the node types that workers serve, and waiting attempts',
  commands: [list],
};
