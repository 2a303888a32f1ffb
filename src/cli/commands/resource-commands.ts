import type { Client } from '../../client/index.ts';
import type { CommandSpec } from '../command.ts';
import { EXIT } from '../exit.ts';
import { propertyLines } from '../text.ts';
import { confirm } from '../values.ts';

/** A kind of resource with ids, such as schedules: what the generic commands below need to know of it. */
export interface Resource {
  readonly group: string;
  /** The positional argument, for example `<scheduleId>`. */
  readonly takes: string;
  readonly exampleId: string;
}

type Action = (client: Client, id: string) => Promise<unknown>;

/** Builds a `get` command that prints one resource. */
export function getCommand(
  { group, takes, exampleId }: Resource,
  summary: string,
  get: (client: Client, id: string) => Promise<Readonly<Record<string, unknown>>>,
): CommandSpec {
  return {
    name: 'get',
    takes,
    summary,
    example: `${group} get ${exampleId}`,
    async run(context, { args: [id = ''] }) {
      const resource = await get(await context.client(), id);
      context.show(resource, () => propertyLines(resource));
      return EXIT.done;
    },
  };
}

/** Builds a `delete` command that asks for confirmation. */
export function deleteCommand({ group, takes, exampleId }: Resource, summary: string, remove: Action): CommandSpec {
  return {
    name: 'delete',
    takes,
    summary,
    flags: { '--yes': 'skip the confirmation' },
    example: `${group} delete ${exampleId} --yes`,
    async run(context, { args: [id = ''], options }) {
      await confirm(context.terminal, options.yes === true, `Delete ${id}?`);
      await remove(await context.client(), id);
      context.show(undefined, () => [`Deleted ${id}.`]);
      return EXIT.done;
    },
  };
}

/** Builds a `pause` or `resume` command. */
export function switchCommand(
  name: 'pause' | 'resume',
  { group, takes, exampleId }: Resource,
  summary: string,
  action: Action,
): CommandSpec {
  return {
    name,
    takes,
    summary,
    example: `${group} ${name} ${exampleId}`,
    async run(context, { args: [id = ''] }) {
      const changed = await action(await context.client(), id);
      context.show(changed, () => [`${name === 'pause' ? 'Paused' : 'Resumed'} ${id}.`]);
      return EXIT.done;
    },
  };
}
