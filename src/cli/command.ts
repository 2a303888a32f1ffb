import { type Command, Option } from 'commander';
import type { Client } from '../client/index.ts';
import { currentLogin } from './credentials.ts';
import type { Situation } from './error-report.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { hostClient } from './host-client.ts';
import { resourceArguments } from './resource-arguments.ts';
import type { Terminal } from './terminal.ts';
import { coloured, type Paint, plain } from './text.ts';

/** The parsed arguments and options of one command line, still as text. */
export interface CommandInput {
  readonly args: readonly string[];
  /** Option values by flag name in camel case; a list for flags that may be repeated. */
  readonly options: Readonly<Record<string, string | true | readonly string[] | undefined>>;
}

/** One command. Help, shell completion and argument parsing are all generated from these. */
export interface CommandSpec {
  readonly name: string;
  readonly aliases?: readonly string[];
  /** Positional arguments in commander syntax, for example `<runId> [nodeId]`. */
  readonly takes?: string;
  readonly summary: string;
  /** Flag to description. A flag whose value ends in `...` may be repeated. */
  readonly flags?: Readonly<Record<string, string>>;
  /** An example command line, without the program name. */
  readonly example: string;
  /** What --json prints instead of a reply: the result of a command that asks no host, or nothing, and there is no --json. */
  readonly json?: 'result' | 'nothing';
  /** Returns the exit code; undefined means success. */
  run(context: Context, given: CommandInput): Promise<ExitCode | undefined>;
}

/** Commands that share a noun, such as `capstan runs …`. */
export interface CommandGroup {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly summary: string;
  readonly commands: readonly CommandSpec[];
}

/** The services that every command gets. */
export interface Context {
  readonly terminal: Terminal;
  readonly isJson: boolean;
  readonly isQuiet: boolean;
  readonly paint: Paint;
  /** A client for the host from CAPSTAN_URL or `capstan login`. */
  client(): Promise<Client>;
  /** Prints a result: the reply of the host with --json, `quiet` lines with --quiet, `words` otherwise. */
  show(value: unknown, words: () => readonly string[], quiet?: () => readonly string[]): void;
  /** Prints a hint to standard error, unless --quiet is set. */
  note(text: string): void;
}

/** Receives what came of the command that commander runs, and what to know to explain an error of it. */
export interface Outcome extends Situation {
  code: ExitCode;
  login?: Situation['login'];
  named?: Situation['named'];
}

/** The flags that every command has. */
function commonFlags({ json }: CommandSpec): Readonly<Record<string, string>> {
  return {
    ...(json === 'nothing' ? {} : { '--json': `print the ${json ?? 'reply of the host'} as JSON` }),
    '-q, --quiet': 'print only ids, or nothing',
  };
}

/** Adds a command group and its commands to the program. */
export function mountGroup(program: Command, group: CommandGroup, terminal: Terminal, outcome: Outcome): void {
  const parent = program
    .command(group.name)
    .aliases(group.aliases ?? [])
    .description(group.summary);
  for (const spec of group.commands) mountCommand(parent, spec, terminal, outcome);
}

/** Adds one command, with its options, help text and action, to its parent. */
export function mountCommand(parent: Command, spec: CommandSpec, terminal: Terminal, outcome: Outcome): void {
  const command = parent
    .command(spec.name)
    .aliases(spec.aliases ?? [])
    .description(spec.summary);
  for (const argument of spec.takes?.split(' ') ?? []) command.argument(argument);
  for (const [flag, meaning] of Object.entries({ ...spec.flags, ...commonFlags(spec) })) {
    command.addOption(optionOf(flag, meaning));
  }
  const twin = twinOf(spec.flags ?? {});
  if (twin) command.addOption(new Option(`--${twin.also} <text>`).hideHelp());
  command.addHelpText('after', `\nExample:\n  $ capstan ${spec.example}`);
  command.action(async () => {
    const given = command.opts();
    const options = twin ? { ...given, [twin.name]: given[twin.name] ?? given[twin.also] } : given;
    const context = contextOf(terminal, options.json === true, options.quiet === true, outcome);
    const args = command.processedArgs.flat().filter((arg): arg is string => arg !== undefined);
    outcome.named = resourceArguments(spec.takes ?? '', args);
    outcome.code = (await spec.run(context, { args, options })) ?? EXIT.done;
  });
}

/** `--note` and `--reason` mean the same: whoever knows one of them need not look up which it is here. */
function twinOf(flags: Readonly<Record<string, string>>): { readonly name: string; readonly also: string } | undefined {
  const [hasNote, hasReason] = ['--note <text>', '--reason <text>'].map((flag) => Object.hasOwn(flags, flag));
  if (hasNote === hasReason) return undefined;
  return hasNote ? { name: 'note', also: 'reason' } : { name: 'reason', also: 'note' };
}

function optionOf(flag: string, meaning: string): Option {
  if (!flag.endsWith('...>')) return new Option(flag, meaning);
  const collect = (value: string, before: readonly string[] | undefined): string[] => [...(before ?? []), value];
  return new Option(flag.replace('...>', '>'), `${meaning}; may be repeated`).argParser(collect);
}

function contextOf(terminal: Terminal, isJson: boolean, isQuiet: boolean, outcome: Outcome): Context {
  const print = (lines: readonly string[]): void => terminal.out(lines.map((line) => `${line}\n`).join(''));
  return {
    terminal,
    isJson,
    isQuiet,
    paint: terminal.hasColours ? coloured : plain,
    async client() {
      outcome.login = await currentLogin(terminal.environment);
      return hostClient(outcome.login);
    },
    show(value, words, quiet = () => []) {
      if (isJson) print(value === undefined ? [] : [JSON.stringify(value)]);
      else print(isQuiet ? quiet() : words());
    },
    note(text) {
      if (!isQuiet) terminal.err(`${text}\n`);
    },
  };
}
