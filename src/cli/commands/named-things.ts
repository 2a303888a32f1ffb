import type { Client } from '../../client/index.ts';
import type { CommandSpec } from '../command.ts';
import { EXIT } from '../exit.ts';
import { facts } from '../text.ts';
import { confirm } from '../values.ts';

/** Things of one kind that the host knows by name, and the group of commands that they have. */
export interface NamedThings {
  readonly group: string;
  /** As in `<scheduleId>`. */
  readonly takes: string;
  readonly exampleId: string;
}

type Act = (client: Client, id: string) => Promise<unknown>;

export function showing(
  { group, takes, exampleId }: NamedThings,
  summary: string,
  get: (client: Client, id: string) => Promise<Readonly<Record<string, unknown>>>,
): CommandSpec {
  return {
    name: 'get',
    takes,
    summary,
    example: `${group} get ${exampleId}`,
    async run(context, { args: [id = ''] }) {
      const thing = await get(await context.client(), id);
      context.show(thing, () => facts(thing));
      return EXIT.done;
    },
  };
}

export function removal({ group, takes, exampleId }: NamedThings, summary: string, remove: Act): CommandSpec {
  return {
    name: 'delete',
    takes,
    summary,
    flags: { '--yes': 'do not ask' },
    example: `${group} delete ${exampleId} --yes`,
    async run(context, { args: [id = ''], options }) {
      await confirm(context.terminal, options.yes === true, `Remove ${id}?`);
      await remove(await context.client(), id);
      context.show(undefined, () => [`${id} is removed.`]);
      return EXIT.done;
    },
  };
}

/** Switches a thing off for a while, and on again. */
export function turning(
  name: 'pause' | 'resume',
  { group, takes, exampleId }: NamedThings,
  summary: string,
  turn: Act,
): CommandSpec {
  return {
    name,
    takes,
    summary,
    example: `${group} ${name} ${exampleId}`,
    async run(context, { args: [id = ''] }) {
      const turned = await turn(await context.client(), id);
      context.show(turned, () => [`${id} is ${name === 'pause' ? 'off' : 'on'}.`]);
      return EXIT.done;
    },
  };
}
