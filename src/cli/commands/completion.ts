import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';

/** Completions by the word before them; the empty key holds those of the program itself. */
type Words = ReadonlyMap<string, readonly string[]>;

const SHELLS: Readonly<Record<string, (words: Words) => string>> = { bash, zsh, fish };

/** Builds the `completion` command for the given groups and commands. */
export function completionOf(groups: readonly CommandGroup[], commands: readonly CommandSpec[]): CommandSpec {
  return {
    name: 'completion',
    takes: '<shell>',
    summary: `Print a completion script for ${Object.keys(SHELLS).join(', ')}`,
    example: 'completion bash > ~/.local/share/bash-completion/completions/capstan',
    json: 'nothing',
    async run(context, { args: [shell = ''] }) {
      const script = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
      if (!script) throw new UsageError(`<shell> must be one of ${Object.keys(SHELLS).join(', ')}.`);
      context.terminal.out(script(wordsOf(groups, commands)));
      return EXIT.done;
    },
  };
}

function wordsOf(groups: readonly CommandGroup[], commands: readonly CommandSpec[]): Words {
  const names = (group: CommandGroup): string[] => [group.name, ...(group.aliases ?? [])];
  const top = [...groups.flatMap(names), ...commands.map(({ name }) => name), 'serve', 'completion', 'help'];
  const below = groups.flatMap((group) =>
    names(group).map((name): [string, string[]] => [name, group.commands.map((command) => command.name)]),
  );
  return new Map([['', top], ...below]);
}

function bash(words: Words): string {
  return `_capstan() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then words="${words.get('')!.join(' ')}"
  elif [ "$COMP_CWORD" -eq 2 ]; then
    case "\${COMP_WORDS[1]}" in
${below(words)
  .map(([name, names]) => `      ${name}) words="${names.join(' ')}" ;;`)
  .join('\n')}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _capstan capstan
`;
}

function zsh(words: Words): string {
  return `#compdef capstan
_capstan() {
  if (( CURRENT == 2 )); then compadd ${words.get('')!.join(' ')}
  elif (( CURRENT == 3 )); then
    case "$words[2]" in
${below(words)
  .map(([name, names]) => `      ${name}) compadd ${names.join(' ')} ;;`)
  .join('\n')}
    esac
  else _files
  fi
}
compdef _capstan capstan
`;
}

function fish(words: Words): string {
  return [
    `complete -c capstan -n __fish_use_subcommand -f -a '${words.get('')!.join(' ')}'`,
    ...below(words).map(
      ([name, names]) => `complete -c capstan -n '__fish_seen_subcommand_from ${name}' -a '${names.join(' ')}'`,
    ),
    '',
  ].join('\n');
}

function below(words: Words): [string, readonly string[]][] {
  return [...words].filter(([name]) => name !== '');
}
