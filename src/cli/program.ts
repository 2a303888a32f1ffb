import { Command, CommanderError } from 'commander';
import { VERSION } from '../version.ts';
import { type CommandGroup, type CommandSpec, mountCommand, mountGroup, type Outcome } from './command.ts';
import { COMMANDS, GROUPS } from './commands/index.ts';
import { describeError, errorEnvelope } from './error-report.ts';
import { EXIT, type ExitCode } from './exit.ts';
import type { Terminal } from './terminal.ts';

/** Parses and runs one command line; returns its exit code. */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<ExitCode> {
  const outcome: Outcome = { code: EXIT.done };
  try {
    const program = programOf(args, terminal, outcome);
    await addServe(program, args);
    await program.parseAsync(args, { from: 'user' });
    return outcome.code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    const report = describeError(error, outcome);
    if (!report) throw error;
    const lines = args.includes('--json') ? [errorEnvelope(error, report)] : report.lines;
    terminal.err(lines.map((line) => `${line}\n`).join(''));
    return report.code;
  }
}

const HELP = `
Which host and key:
  capstan login [url]      stores both, for the commands that follow
  CAPSTAN_URL              the host (http://127.0.0.1:3210); wins over the login
  CAPSTAN_KEY              the API key; wins over the login. The first start of a host prints one

A first run:
  $ capstan runs start support-triage --set subject='I cannot log in' --set plan=pro --wait`;

function programOf(args: readonly string[], terminal: Terminal, outcome: Outcome): Command {
  const program = new Command('capstan')
    .description('An OpenWOP host: run agent workflows you can watch, pause, judge and replay')
    .version(VERSION)
    .configureOutput({ writeOut: terminal.out, writeErr: terminal.err })
    .showHelpAfterError('Run the command with --help to see its usage.')
    .addHelpText('after', HELP)
    .exitOverride();
  const isNamed = ({ name, aliases = [] }: Named): boolean => name === args[0] || aliases.includes(args[0]!);
  // Who names a command needs no other: to describe all of them takes longer than most commands.
  const [commands, groups] = [COMMANDS.filter(isNamed), GROUPS.filter(isNamed)];
  const isKnown = args[0] === 'serve' || commands.length + groups.length > 0;
  for (const spec of isKnown ? commands : COMMANDS) mountCommand(program, spec, terminal, outcome);
  for (const group of isKnown ? groups : GROUPS) mountGroup(program, group, terminal, outcome);
  return program;
}

type Named = Pick<CommandSpec | CommandGroup, 'name' | 'aliases'>;

/** Loads the host code only for `serve`, because it would slow down every other command. */
async function addServe(program: Command, args: readonly string[]): Promise<void> {
  const serve = program.command('serve').description('Run the host');
  if (args.includes('serve')) (await import('./commands/serve.ts')).setUpServe(serve);
}
