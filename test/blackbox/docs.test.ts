import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { readModels } from '../../src/capabilities/ai/models/settings.ts';
import { readConfig } from '../../src/config.ts';
import { freshFolder } from '../support/database.ts';
import { Desk } from '../support/desk.ts';
import { freePort } from '../support/free-port.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { bundledFile, spawnHost } from '../support/process.ts';
import { drafted, template } from '../support/proposals.ts';
import { type PageOf, pagesWith, type Snippet, snippets } from '../support/snippets.ts';
import { until } from '../support/until.ts';

/**
 * Goal: the pages are true. Method: every block is taken as it stands. Shell lines of a page are pasted one block after
 * the other, workflows are registered and run, settings are read, code is run, other JSON is parsed. What cannot be
 * run is marked on the page; examples of nodes are run by test/node-docs.test.ts, and the types of code are checked by
 * test/package/package.test.ts.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const RUN = ['sh', 'json', 'ts', 'env'];
/** Pages whose programs go on: a host of its own, and a receiver of deliveries. */
const HOST_PAGE = 'docs/your-first-node.md';
const RECEIVER_PAGE = 'docs/webhooks.md';

const all = snippets().filter(({ language }) => language !== 'text');
const marked = all.filter(({ isNotRun }) => isNotRun !== undefined);
const run = all.filter(({ isNotRun }) => isNotRun === undefined);
const of = (language: string): Snippet[] => run.filter((snippet) => snippet.language === language);
const named = (each: Snippet) => [`${each.page}:${each.line}`, each] as const;
const pages = (language: string) => pagesWith(language, run);
const isWorkflow = ({ text }: Snippet): boolean => /^\{\s*"id"/.test(text) && text.includes('"nodes"');

describe('the pages', () => {
  const folder = freshFolder();
  let host: TestHost;
  let desk: Desk;

  beforeAll(async () => {
    const script = join(folder.path, 'model.json');
    writeFileSync(script, JSON.stringify({ answers: [{ content: 'Refund the customer: the parcel is lost.' }] }));
    const { models } = readModels(
      JSON.stringify([{ provider: 'play', kind: 'scripted', script, models: ['small'] }]),
      {},
    );
    host = await startTestHost('sqlite', inject('postgresUrl'), { models, workflowsFolder: join(ROOT, 'examples') });
    desk = new Desk(join(folder.path, 'desk'), { CAPSTAN_URL: host.url, CAPSTAN_KEY: KEYS.owner.key });
    symlinkSync(host.config.dataFolder, join(desk.folder, 'data'));
    const api = host.as('owner');
    await drafted(api, 'prompt-template', template());
    await api.ended(await api.run('support-triage', { inputs: { subject: 'I cannot log in' } }));
  });
  afterAll(async () => {
    await host?.stop();
    folder.remove();
    // The count is what a reader of the report wants to see.
    process.stdout.write(
      `documentation: ${run.length} of ${all.length} blocks executed, ${marked.length} marked as not run\n`,
    );
  });

  it('name the language of every block, so that none is left out', () => {
    expect(all.filter(({ language }) => !RUN.includes(language)).map((each) => `${each.page}:${each.line}`)).toEqual(
      [],
    );
  });

  it.each(pages('sh'))('can be pasted: $page', { timeout: 180_000 }, async ({ text }) => {
    const { code, shown } = await desk.paste(text);
    expect(code === 0 ? 'fine' : shown).toBe('fine');
  });

  it.each(of('json').filter(isWorkflow).map(named))('have workflows that run: %s', async (_where, { text }) => {
    const api = host.as('owner');
    const registered = await api.post('/v1/host/capstan/workflows', JSON.parse(text));
    expect([registered.status, registered.body.warnings ?? registered.body.message]).toEqual([201, undefined]);
    expect(await api.ended(await api.run(registered.body.id))).toMatchObject({ status: 'completed' });
  });

  it.each(of('json').map(named))('have JSON: %s', (_where, { text }) => {
    expect(() => JSON.parse(text)).not.toThrow();
  });

  it.each(of('env').map(named))('have settings that a host takes: %s', async (_where, { text }) => {
    writeFileSync(join(desk.folder, 'answers.json'), '{ "answers": [{ "content": "Yes." }] }');
    const lines = `cd "${desk.folder}" && set -a && ${text}\nenv -0`;
    const { stdout } = await promisify(execFile)('bash', ['--norc', '-euo', 'pipefail', '-c', lines], {
      env: { PATH: process.env.PATH ?? '' },
    });
    const environment = Object.fromEntries(
      stdout.split('\0').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    );
    const before = process.cwd();
    expect(() => readConfig({}, environment)).not.toThrow();
    expect(process.cwd()).toBe(before);
  });

  it.each(pages('ts').filter(({ page }) => ![HOST_PAGE, RECEIVER_PAGE].includes(page)))(
    'have code that runs: $page',
    async (each) => {
      const { code, shown } = await desk.paste(`"${process.execPath}" "${programOf(each, desk.folder)}"`);
      expect(code === 0 ? 'fine' : shown).toBe('fine');
    },
  );

  it('have a receiver of webhooks, which takes what the host sends and nothing else', async () => {
    const PORT = String(await freePort());
    const url = `http://127.0.0.1:${PORT}/`;
    const { body: webhook } = await host.as('owner').post('/v1/webhooks', { url, events: ['run.completed'] });
    const path = programOf(pages('ts').find(({ page }) => page === RECEIVER_PAGE)!, desk.folder);
    const receiver = await spawnHost({ PORT, WEBHOOK_SECRET: webhook.secret }, { path, folder: desk.folder });
    const headers = { 'x-openwop-timestamp': String(Date.now() / 1_000), 'x-openwop-signature': 'sha256=00' };
    expect((await fetch(url, { method: 'POST', headers, body: '{}' })).status).toBe(401);
    expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(401);
    const runId = await host.as('owner').run('support-triage', { inputs: { subject: 'I cannot log in' } });
    await until(
      async () => receiver.output(),
      (shown) => shown.includes(`run.completed ${runId}`),
    );
    await host.as('owner').request('DELETE', `/v1/webhooks/${webhook.webhookId}`);
    receiver.signal('SIGTERM');
    expect(await receiver.exit).toBe('SIGTERM');
  });

  it('have a host in a program, which runs what the page says', { timeout: 60_000 }, async () => {
    const ofPage = (language: string) => pagesWith(language, snippets()).find(({ page }) => page === HOST_PAGE)!;
    const own = join(folder.path, 'own');
    mkdirSync(own);
    const program = { path: programOf(ofPage('ts'), own), folder: own };
    const started = await spawnHost({ PORT: '0', CAPSTAN_API_KEYS: '' }, program);
    const [key = ''] = /hk_live_[\w-]+/.exec(started.output()) ?? [];
    const reader = new Desk(join(own, 'desk'), { CAPSTAN_URL: started.url, CAPSTAN_KEY: key });
    const { shown } = await reader.paste(ofPage('sh').text.slice(ofPage('sh').text.indexOf('export CAPSTAN_URL')));
    expect(shown).toContain(ofPage('text').text);
    started.signal('SIGINT');
    expect(await started.exit).toBe(0);
  });
});

/** Writes the code of a page into a folder, as a program that imports what the sources make. */
function programOf({ name, text }: PageOf, folder: string): string {
  const file = join(folder, `${name}.mts`);
  const imports = (_all: string, part = ''): string => JSON.stringify(pathToFileURL(exportedFile(`.${part}`)).href);
  writeFileSync(file, text.replaceAll(/'capstan(\/\w+)?'/g, imports));
  return file;
}

/** The file that a script gets which imports a part of the package. */
function exportedFile(part: string): string {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  return bundledFile(basename(exports[part].default, '.js'));
}
