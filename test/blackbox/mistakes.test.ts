import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { capstan } from '../support/command-line.ts';
import { freshFolder } from '../support/database.ts';
import { node, register, workflow } from '../support/definitions.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { runProgram } from '../support/process.ts';

/**
 * Goal: whoever makes one of the typical mistakes reads in a sentence or two what is wrong and what to do. Method: a
 * table of what was done, the message as a whole, and nothing else on the screen.
 */

let host: TestHost;
const folder = freshFolder();
const taken = createServer();

beforeAll(async () => {
  host = await startTestHost('sqlite', undefined);
  await register(host.as('owner'), wanting);
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  await host?.stop();
  taken.close();
  folder.remove();
});

function fileOf(name: string, content: string): string {
  const path = join(folder.path, name);
  writeFileSync(path, content);
  return path;
}

/** One or two sentences, no stack, no code of the machine without an explanation. */
function expectPlain(message: string): void {
  expect(message.match(/[.?!](?=[)\s]|$)/g)?.length, message).toBeLessThanOrEqual(2);
  expect(message.trim().split('\n').length, message).toBeLessThanOrEqual(3);
  expect(message).not.toMatch(/\n\s+at /);
}

interface Mistake {
  readonly did: string;
  readonly args: () => readonly string[];
  readonly environment?: Record<string, string>;
  readonly reads: RegExp;
}

const start = ['runs', 'start', 'support-triage'];
const misspelt = JSON.stringify({ ...workflow([node('a', 'core.fali')]), id: 'misspelt' });
const unfinished = JSON.stringify({
  ...workflow([node('a', 'core.noop', { inputs: { x: { type: 'expression', expression: '1 +\n  == 2' } } })]),
  id: 'unfinished',
});

const wanting = workflow([node('a')], [], {
  variables: [
    { name: 'one', type: 'string', required: true },
    { name: 'two', type: 'string', required: true },
    { name: 'list', type: 'array' },
    { name: 'count', type: 'number' },
  ],
});

const MISTAKES: readonly Mistake[] = [
  {
    did: 'left out an input',
    args: () => [...start, '--set', 'plan=pro'],
    reads:
      /^A required input is missing\. \(validation_error, input subject\)\nThe workflow takes: subject, body, plan,.*\.\n$/,
  },
  {
    did: 'left out several inputs',
    args: () => ['runs', 'start', wanting.id],
    reads:
      /^Required inputs are missing: one, two\. \(validation_error\)\nThe workflow takes: one, two, list, count\.\n$/,
  },
  {
    did: 'gave an input of another type',
    args: () => [...start, '--input', '{"subject":"a","plan":5}'],
    reads: /^The input must be of type string\. \(validation_error, input plan\)\nThe workflow takes: .*\n$/,
  },
  {
    did: 'misspelt a workflow',
    args: () => ['runs', 'start', 'support-traige'],
    reads: /^There is no workflow support-traige, or you may not see it\.\nDid you mean support-triage\?\n$/,
  },
  {
    did: 'misspelt the workflow of a schedule',
    args: () => ['schedules', 'create', 'nightly-repor', '--cron', '0 3 * * *'],
    reads: /There is no such workflow\.[\s\S]*Did you mean nightly-report\?\n$/,
  },
  { did: 'misspelt a command', args: () => ['runs', 'lst'], reads: /unknown command 'lst'\n\(Did you mean .*list/ },
  {
    did: 'misspelt a flag',
    args: () => [...start, '--sett', 'a=b'],
    reads: /unknown option '--sett'\n\(Did you mean --set\?\)/,
  },
  {
    did: 'gave an assignment without a value',
    args: () => [...start, '--set', 'subject'],
    reads: /^--set subject must have the form name=value\.\n$/,
  },
  {
    did: 'gave a list whose quotes the shell took away',
    args: () => ['runs', 'start', wanting.id, '--set', 'list=[a,b]'],
    reads:
      /^--set list must be of type array, and \[a,b\] is not JSON\. Write it in quotes that the shell keeps, for example --set 'list=\[1, 2\]'\.\n$/,
  },
  {
    did: 'gave a text for a number',
    args: () => ['runs', 'start', wanting.id, '--set', 'count=lots'],
    reads: /^--set count must be of type number, and lots is none\. Write for example --set count=5\.\n$/,
  },
  {
    did: 'misspelt an input',
    args: () => [...start, '--set', 'subject=a', '--set', 'plann=pro'],
    reads: /^The workflow declares no input plann; did you mean plan\?\nTo send it anyway, add --allow-unknown\.\n$/,
  },
  {
    did: 'gave an input of another workflow',
    args: () => [...start, '--input', '{"subject":"a","colour":1}'],
    reads: /^The workflow declares no input colour; it declares subject, body, plan, .*\.\nTo send it anyway, add/,
  },
  {
    did: 'gave inputs that are not JSON',
    args: () => [...start, '--input', '{a:1}'],
    reads: /^--input is not valid JSON: .*, in \{a:1\}\. Pass it in quotes, as @file, or as - for standard input\.\n$/,
  },
  {
    did: 'named a file that is not there',
    args: () => ['workflows', 'register', 'nowhere.json'],
    reads: /^There is no file nowhere\.json\. Check the path\.\n$/,
  },
  {
    did: 'misspelt a node type',
    args: () => ['workflows', 'register', fileOf('misspelt.json', misspelt)],
    reads: /nodes\[0\]\.typeId: Unknown node type "core\.fali"\. Did you mean "core\.fail"\? \(validation_error\)\n$/,
  },
  {
    did: 'left an expression unfinished',
    args: () => ['workflows', 'register', fileOf('unfinished.json', unfinished)],
    reads: /nodes\[0\]\.inputs\.x: Unexpected token: EQ, at line 2, column 3\. \(validation_error\)\n$/,
  },
  {
    did: 'gave a minute that does not exist',
    args: () => ['schedules', 'create', 'nightly-report', '--cron', '61 * * * *'],
    reads:
      /^cron is not a pattern: Invalid value for minute: 61\. Give five fields \(minute, hour, day, month, weekday\), or six/,
  },
  {
    did: 'created a key that may do nothing',
    args: () => ['keys', 'create', 'ci'],
    reads:
      /^--role or --scope is required. Roles: viewer, editor, reviewer, owner; each includes the rights of those before it\.\n$/,
  },
  {
    did: 'asked for a status that does not exist',
    args: () => ['runs', 'list', '--status', 'done'],
    reads: /^Unknown status done\. --status must be one of .*completed.*\.\n$/,
  },
  {
    did: 'used a key that is not valid',
    args: () => ['runs', 'list'],
    environment: { CAPSTAN_KEY: 'hk_live_wrong' },
    reads: /^The host at \S+ does not accept the key in CAPSTAN_KEY: .*\nGet another from an owner .*\.\n$/,
  },
  {
    did: 'has no key',
    args: () => ['runs', 'list'],
    environment: { CAPSTAN_KEY: '' },
    reads: /^There is no key for \S+\.\nLog in with `capstan login \S+`, or set CAPSTAN_KEY; .*\.\n$/,
  },
  {
    did: 'misspelt a run',
    args: () => ['runs', 'get', 'run-nowhere'],
    reads: /^There is no run run-nowhere, or you may not see it\.\n`capstan runs list` lists what there is\.\n$/,
  },
  {
    did: 'cancelled a run that is not there',
    args: () => ['runs', 'cancel', 'run-nowhere'],
    reads: /^There is no run run-nowhere, or you may not see it\.\n`capstan runs list` lists what there is\.\n$/,
  },
  {
    did: 'named a run by a variable that is not set',
    args: () => ['events', ''],
    reads: /^runId is empty\. `capstan runs list` lists what there is\.\n$/,
  },
  {
    did: 'follows a run of a host that is not there',
    args: () => ['events', 'run-1', '--follow'],
    environment: { CAPSTAN_URL: 'http://127.0.0.1:1' },
    reads: /^Cannot reach http:\/\/127\.0\.0\.1:1: ECONNREFUSED\.\nStart a host with `capstan serve`, or/,
  },
  {
    did: 'reads the feed of a host that is not there',
    args: () => ['events'],
    environment: { CAPSTAN_URL: 'http://127.0.0.1:1' },
    reads: /^Cannot reach http:\/\/127\.0\.0\.1:1: ECONNREFUSED\.\n/,
  },
  {
    did: 'left a placeholder in place of the key',
    args: () => ['runs', 'list'],
    environment: { CAPSTAN_KEY: 'the-key…' },
    reads: /^The API key contains "…", a character that keys do not have\. Correct CAPSTAN_KEY, or log in again with/,
  },
  {
    did: 'left out the protocol of the host',
    args: () => ['runs', 'list'],
    environment: { CAPSTAN_URL: 'localhost:3210' },
    reads: /^localhost:3210 is not a host URL\. Use a URL like http:\/\/127\.0\.0\.1:3210\.\n$/,
  },
  {
    did: 'recovered a key where no store is',
    args: () => ['keys', 'recover', '--data', join(folder.path, 'nothing')],
    reads: /^There is no Capstan store in .*nothing\. Name its folder with --data\.\n$/,
  },
];

/** Starts that fail: these run in a process of their own. */
const STARTS: readonly (Omit<Mistake, 'args' | 'environment'> & {
  readonly environment: () => Record<string, string>;
})[] = [
  {
    did: 'started on a port that is taken',
    environment: () => ({ PORT: String((taken.address() as { port: number }).port) }),
    reads:
      /Port \d+ of 127\.0\.0\.1 is taken by another program\. Stop that program, or choose another port with --port/,
  },
  {
    did: 'named a file as the data folder',
    environment: () => ({ CAPSTAN_DATA: fileOf('data.txt', '') }),
    reads: /The data folder .*data\.txt is a file, not a folder\. Choose another folder with --data/,
  },
  {
    did: 'named a data folder where none can be made',
    environment: () => ({ CAPSTAN_DATA: '/proc/x' }),
    reads: /Cannot write to the data folder \/proc\/x \(ENOENT\)\. Choose another folder with --data/,
  },
  {
    did: 'started without the database',
    environment: () => ({ DATABASE_URL: 'postgres://user:not-shown@127.0.0.1:1/x' }),
    reads: /Cannot reach the database at 127\.0\.0\.1:1 \(ECONNREFUSED\)\. Start it, or correct DATABASE_URL\./,
  },
  {
    did: 'named a workflows folder that is not there',
    environment: () => ({ CAPSTAN_WORKFLOWS: join(folder.path, 'nowhere') }),
    reads: /Cannot read the workflows folder .*nowhere \(ENOENT\)\. Create it, or correct --workflows/,
  },
  {
    did: 'misspelt a setting',
    environment: () => ({ CAPSTAN_PORT: '1' }),
    reads: /CAPSTAN_PORT is not a setting\. Did you mean PORT\?/,
  },
];

describe('whoever', () => {
  it.each(MISTAKES)('$did reads what to do', async ({ args, environment, reads }) => {
    const own = { CAPSTAN_URL: host.url, CAPSTAN_KEY: KEYS.owner.key, CAPSTAN_CONFIG: join(folder.path, 'none.json') };
    const { code, out, err } = await capstan(args(), { environment: { ...own, ...environment } });
    expect({ code: code > 0, out }).toEqual({ code: true, out: '' });
    expect(err).toMatch(reads);
    expectPlain(err);
  });

  it('gives an input that the workflow does not declare may insist on it', async () => {
    const environment = { CAPSTAN_URL: host.url, CAPSTAN_KEY: KEYS.owner.key };
    const { code, err } = await capstan(
      [...start, '--set', 'subject=a', '--set', 'plann=pro', '--allow-unknown', '-q'],
      {
        environment,
      },
    );
    expect({ code, err }).toEqual({ code: 0, err: '' });
  });

  it.each(STARTS)('$did reads what to do', async ({ environment, reads }) => {
    const own = {
      PORT: '0',
      CAPSTAN_LOG: 'error',
      CAPSTAN_DATA: join(folder.path, 'data'),
      CAPSTAN_SECRET: 'long-enough-for-a-secret-0123456789',
    };
    const { code, output } = await runProgram(['serve'], { ...own, ...environment() });
    expect(code).not.toBe(0);
    expect(output).toMatch(/^Capstan could not start/);
    expect(output).toMatch(reads);
    expect(output).not.toContain('not-shown');
    expectPlain(output);
  });

  it('serves a project on a port that is taken is not left waiting', async () => {
    const project = join(folder.path, 'my-agent');
    expect((await capstan(['init', project])).code).toBe(0);
    const { port } = taken.address() as { port: number };
    const { code, output } = await runProgram(['dev', project, '--port', String(port)], { CAPSTAN_LOG: 'error' });
    expect({ code, output }).toEqual({
      code: 1,
      output: expect.stringMatching(/^Capstan could not start: Port \d+ of/),
    });
    expectPlain(output);
  });

  it('makes one of them is in a table of at least twenty', () => {
    expect(MISTAKES.length + STARTS.length).toBeGreaterThanOrEqual(20);
  });
});
