import type { Scenario, Stage } from '../scenario.ts';

const HEADING = /^[A-Z][a-z ]+:$/;
const TERM = /^ {2}(\S.*?)(?: {2,}(.*))?$/;
const CONTINUED = /^ {4,}(\S.*)$/;

/** What `--help` lists for the command itself and for each of its groups. */
export const help: Scenario = {
  name: 'help',
  modes: ['plain'],
  async play(stage) {
    for (const command of await recordHelp(stage, [])) await recordHelp(stage, [command]);
  },
};

/** What `--help` lists for every command of every group: a process for each, on both sides. */
export const helpOfCommands: Scenario = {
  name: 'help of commands',
  modes: ['plain'],
  isSlow: true,
  async play(stage) {
    for (const group of await recordHelp(stage, [])) {
      for (const command of await recordHelp(stage, [group])) await recordHelp(stage, [group, command]);
    }
  },
};

/** Records one page and returns the names of the commands on it. */
async function recordHelp(stage: Stage, command: readonly string[]): Promise<string[]> {
  const { output } = await stage.capstan([...command, '--help']);
  const page = parseHelp(output);
  stage.record(['capstan', ...command].join(' '), page);
  const commands = page.filter(({ heading }) => heading === 'Commands:').map(({ term }) => /^[a-z-]+/.exec(term)![0]);
  return commands.filter((name) => name !== 'help');
}

interface HelpEntry {
  readonly heading: string;
  readonly term: string;
  /** Environment variables that the explanation names. */
  readonly variables: readonly string[];
  readonly help: string;
}

/** The options and commands of a page with their explanations, however those are wrapped. */
function parseHelp(text: string): HelpEntry[] {
  const entries: { heading: string; term: string; help: string }[] = [];
  let heading = '';
  for (const line of text.split('\n')) {
    if (HEADING.test(line)) heading = line;
    const continued = CONTINUED.exec(line)?.[1];
    const last = entries.at(-1);
    if (continued !== undefined && last) {
      last.help += ` ${continued}`;
      continue;
    }
    const [, term, explanation = ''] = TERM.exec(line) ?? [];
    if (term !== undefined) entries.push({ heading, term, help: explanation });
    else if (line.startsWith('Usage:')) entries.push({ heading: '', term: line, help: '' });
    else if (line !== '' && !HEADING.test(line)) entries.push({ heading: '', term: '', help: line });
  }
  return entries.map((entry) => ({ ...entry, variables: entry.help.match(/\[[A-Z_]+\]/g) ?? [] }));
}
