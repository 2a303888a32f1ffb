import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { capstan } from '../support/command-line.ts';
import { KEYS } from '../support/host.ts';
import { localHosts } from '../support/local-hosts.ts';

/** Goal: the example with an agent does what its page says. Method: the commands of the page are given as they stand. */

const PAGE = readFileSync(new URL('../../examples/triage/README.md', import.meta.url), 'utf8');

/** The arguments of a command, as a shell takes them apart. */
function wordsOf(line: string, run: string): string[] {
  const words = line.match(/(?:'[^']*'|\S)+/g) ?? [];
  return words.map((word) => word.replaceAll("'", '').replace('$RUN', run));
}

const commands = PAGE.split('\n').flatMap((line) =>
  line.startsWith('capstan ') ? [line.slice('capstan '.length)] : [],
);
const [, models = ''] = /CAPSTAN_MODELS='([^']+)'/.exec(PAGE) ?? [];

describe('the example of an agent that sorts tickets', () => {
  const { start, newFolder } = localHosts();

  it('works when it is typed in', async () => {
    const host = await start({ CAPSTAN_CONFORMANCE: '0', CAPSTAN_DATA: newFolder(), CAPSTAN_MODELS: models });
    const environment = { CAPSTAN_URL: host.url, CAPSTAN_KEY: KEYS.reviewer.key };
    let run = '';
    const seen = [];
    for (const command of commands) {
      const { code, out } = await capstan(wordsOf(command, run), { environment });
      seen.push({ command: command.split(' ').slice(0, 2).join(' '), code, output: out });
      run = /run-[a-z0-9]+/.exec(out)?.[0] ?? run;
    }
    expect(seen.map(({ command, code }) => [command, code])).toEqual([
      ['packs install', 0],
      ['workflows register', 0],
      ['workflows register', 0],
      ['agents get', 0],
      ['runs start', 0],
      ['runs start', 3],
      ['approvals list', 0],
      ['approvals answer', 0],
    ]);
    expect(seen[3]!.output).toContain('capstan.workflow:triage-customer');
    expect(seen[6]!.output).toContain(run);

    const api = host.as('reviewer');
    const answered = await api.ended(run);
    expect(answered.nodeStates.assign.outputs).toEqual({ text: 'P3 for access: It does not work' });
    const [sure] = /run-[a-z0-9]+/.exec(seen[4]!.output)!;
    const sorted = await api.ended(sure);
    expect(sorted.nodeStates.assign.outputs).toEqual({ text: 'P1 for outage: Nothing loads since nine' });
    const events = await api.events(sure);
    const [lookUp] = events.filter(({ type }) => type === 'node.dispatched');
    expect((await api.ended(lookUp.payload.childRunId)).workflowId).toBe('triage-customer');
  });
});
