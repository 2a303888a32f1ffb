import { execFile } from 'node:child_process';
import { chmodSync, symlinkSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { readModels } from '../../src/capabilities/ai/models/settings.ts';
import { COMMANDS, GROUPS } from '../../src/cli/commands/index.ts';
import { freshFolder } from '../support/database.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { type Snippet, snippets } from '../support/snippets.ts';

/**
 * Goal: the pages are true. Method: every block is taken as it stands. Shell lines of a page are pasted one block after
 * the other, workflows are registered and run, other JSON and code is read. What cannot be run is marked on the page.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Pages whose shell lines stand on their own: nothing else has to be there before. */
const PASTED = ['README.md', 'docs/ten-minutes.md', 'docs/workflows.md'];
const all = snippets();
const run = all.filter(
  ({ isNotRun, language, page }) =>
    isNotRun === undefined && ['json', 'ts', ...(PASTED.includes(page) ? ['sh'] : [])].includes(language),
);
const marked = all.filter(({ isNotRun }) => isNotRun !== undefined);
const of = (language: string): Snippet[] => run.filter((snippet) => snippet.language === language);
const isWorkflow = ({ text }: Snippet): boolean => /^\{\s*"id"/.test(text) && text.includes('"nodes"');

describe('the pages', () => {
  const folder = freshFolder();
  let host: TestHost;

  beforeAll(async () => {
    const script = join(folder.path, 'model.json');
    writeFileSync(script, JSON.stringify({ answers: [{ content: 'Refund the customer: the parcel is lost.' }] }));
    const { models } = readModels(
      JSON.stringify([{ provider: 'play', kind: 'scripted', script, models: ['small'] }]),
      {},
    );
    host = await startTestHost('sqlite', inject('postgresUrl'), { models, workflowsFolder: join(ROOT, 'examples') });
    const shims = { curl: 'test/support/curl.mjs', capstan: 'src/cli/main.ts' };
    for (const [name, path] of Object.entries(shims)) {
      writeFileSync(join(folder.path, name), `#!/bin/sh\nexec "${process.execPath}" "${join(ROOT, path)}" "$@"\n`);
      chmodSync(join(folder.path, name), 0o755);
    }
    symlinkSync(join(ROOT, 'examples'), join(folder.path, 'examples'));
  });
  afterAll(async () => {
    await host?.stop();
    folder.remove();
    // The count is what a reader of the report wants to see.
    process.stdout.write(
      `documentation: ${run.length} of ${all.length} blocks executed, ${marked.length} marked as not run\n`,
    );
  });

  it.each(PASTED)('can be pasted: %s', { timeout: 180_000 }, async (page) => {
    const lines = of('sh').flatMap((snippet) => (snippet.page === page ? [snippet.text] : []));
    const environment = {
      ...process.env,
      PATH: [folder.path, dirname(process.execPath), process.env.PATH].join(delimiter),
      CAPSTAN_URL: host.url,
      CAPSTAN_KEY: KEYS.owner.key,
      XDG_CONFIG_HOME: join(folder.path, 'config'),
      HOME: folder.path,
    };
    const pasted = promisify(execFile)('bash', ['-euo', 'pipefail', '-c', lines.join('\n')], {
      cwd: folder.path,
      env: environment,
    });
    const outcome = await pasted.catch((error: { stdout: string; stderr: string }) => error);
    expect('code' in outcome ? `${outcome.stdout}\n${outcome.stderr}` : 'fine').toBe('fine');
  });

  it.each(
    of('json')
      .filter(isWorkflow)
      .map((each) => [`${each.page}:${each.line}`, each] as const),
  )('have workflows that run: %s', async (_where, { text }) => {
    const api = host.as('owner');
    const registered = await api.post('/v1/host/capstan/workflows', JSON.parse(text));
    expect([registered.status, registered.body.warnings ?? registered.body.message]).toEqual([201, undefined]);
    expect(await api.ended(await api.run(registered.body.id))).toMatchObject({ status: 'completed' });
  });

  it.each(of('json').map((each) => [`${each.page}:${each.line}`, each] as const))(
    'have JSON: %s',
    (_where, { text }) => {
      expect(() => JSON.parse(text)).not.toThrow();
    },
  );

  it.each(of('ts').map((each) => [`${each.page}:${each.line}`, each] as const))('have code: %s', (_where, { text }) => {
    expect(() => stripTypeScriptTypes(text)).not.toThrow();
  });

  it('show commands that exist', () => {
    const known = new Set([...GROUPS, ...COMMANDS].flatMap(({ name, aliases = [] }) => [name, ...aliases]));
    const named = all.flatMap(({ text }) => [...text.matchAll(/^capstan ([a-z]+)/gm)].map(([, word]) => word!));
    expect(named.filter((word) => !known.has(word) && word !== 'serve')).toEqual([]);
  });
});
