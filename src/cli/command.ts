import { type Command, Option } from 'commander';
import { type Client, createClient } from '../client/index.ts';
import { currentLogin } from './credentials.ts';
import { EXIT, type ExitCode } from './exit.ts';
import type { Terminal } from './terminal.ts';
import { coloured, type Paint, plain } from './text.ts';

/** What was given with a command, as text. */
export interface Given {
  readonly args: readonly string[];
  /** By the name of the flag, in camel case; lists for flags that may be repeated. */
  readonly options: Readonly<Record<string, string | true | readonly string[] | undefined>>;
}

/** A command: the table of them makes the help, the completion and the program. */
export interface CommandSpec {
  readonly name: string;
  readonly aliases?: readonly string[];
  /** As `<runId> [nodeId]`. */
  readonly takes?: string;
  readonly summary: string;
  /** Flag to meaning. A flag whose value ends in `...` may be repeated. */
  readonly flags?: Readonly<Record<string, string>>;
  /** Without the name of the program. */
  readonly example: string;
  /** Gives the exit code, where it is not that all is done. */
  run(context: Context, given: Given): Promise<ExitCode | undefined>;
}

export interface CommandGroup {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly summary: string;
  readonly commands: readonly CommandSpec[];
}

/** What every command has. */
export interface Context {
  readonly terminal: Terminal;
  readonly isJson: boolean;
  readonly isQuiet: boolean;
  readonly paint: Paint;
  /** Speaks to the host that the person has named or logged in to. */
  client(): Promise<Client>;
  /** Prints a value of the wire as it is with --json, in words otherwise, and no more than needed with --quiet. */
  show(value: unknown, words: () => readonly string[], quiet?: () => readonly string[]): void;
  /** Says something to the person that is no result. */
  note(text: string): void;
}

/** What comes of a command line. */
export interface Outcome {
  code: ExitCode;
}

const EVERYWHERE: Readonly<Record<string, string>> = {
  '--json': 'print exactly what the host answers',
  '-q, --quiet': 'print no more than ids, or nothing',
};

export function mountGroup(program: Command, group: CommandGroup, terminal: Terminal, outcome: Outcome): void {
  const parent = program
    .command(group.name)
    .aliases(group.aliases ?? [])
    .description(group.summary);
  for (const spec of group.commands) mountCommand(parent, spec, terminal, outcome);
}

export function mountCommand(parent: Command, spec: CommandSpec, terminal: Terminal, outcome: Outcome): void {
  const command = parent
    .command(spec.name)
    .aliases(spec.aliases ?? [])
    .description(spec.summary);
  for (const argument of spec.takes?.split(' ') ?? []) command.argument(argument);
  for (const [flag, meaning] of Object.entries({ ...spec.flags, ...EVERYWHERE })) {
    command.addOption(optionOf(flag, meaning));
  }
  command.addHelpText('after', `\nExample:\n  $ capstan ${spec.example}`);
  command.action(async () => {
    const options = command.opts();
    const context = contextOf(terminal, options.json === true, options.quiet === true);
    const args = command.processedArgs.flat().filter((arg): arg is string => arg !== undefined);
    outcome.code = (await spec.run(context, { args, options })) ?? EXIT.done;
  });
}

function optionOf(flag: string, meaning: string): Option {
  if (!flag.endsWith('...>')) return new Option(flag, meaning);
  const gather = (value: string, before: readonly string[] | undefined): string[] => [...(before ?? []), value];
  return new Option(flag.replace('...>', '>'), `${meaning}; may be repeated`).argParser(gather);
}

function contextOf(terminal: Terminal, isJson: boolean, isQuiet: boolean): Context {
  const print = (lines: readonly string[]): void => terminal.out(lines.map((line) => `${line}\n`).join(''));
  return {
    terminal,
    isJson,
    isQuiet,
    paint: terminal.hasColours ? coloured : plain,
    client: async () => createClient(await currentLogin(terminal.environment)),
    show(value, words, quiet = () => []) {
      if (isJson) print(value === undefined ? [] : [JSON.stringify(value)]);
      else print(isQuiet ? quiet() : words());
    },
    note(text) {
      if (!isQuiet) terminal.err(`${text}\n`);
    },
  };
}
