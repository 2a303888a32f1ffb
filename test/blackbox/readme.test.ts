import { execFile } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { freshFolder } from '../support/database.ts';
import { KEYS } from '../support/host.ts';
import { onOneStore } from '../support/stores.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = freshFolder();
afterAll(() => folder.remove());

/** The shell lines of the walk-through, as somebody would paste them. */
function walkThrough(): string {
  const text = readFileSync(join(root, 'README.md'), 'utf8');
  const [, part = ''] = text.split('## Run a workflow');
  const [section = ''] = part.split('\n## ');
  return [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, lines]) => lines).join('\n');
}

async function paste(lines: string, url: string): Promise<string> {
  const curl = join(folder.path, 'curl');
  const shim = fileURLToPath(new URL('../support/curl.mjs', import.meta.url));
  writeFileSync(curl, `#!/bin/sh\nexec "${process.execPath}" "${shim}" "$@"\n`);
  chmodSync(curl, 0o755);
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', lines], {
    cwd: folder.path,
    env: {
      ...process.env,
      PATH: [folder.path, dirname(process.execPath), process.env.PATH].join(delimiter),
      CAPSTAN_URL: url,
      CAPSTAN_KEY: KEYS.owner.key,
    },
  });
  return stdout;
}

onOneStore('the walk-through of the README', (host) => {
  it('works when it is pasted', async () => {
    const shown = await paste(walkThrough(), host().url);
    expect(shown).toContain('event: run.completed');
    expect(shown).toContain('"status":"completed"');
    expect(shown).toContain('"id":"greeting"');
    const [runId] = shown.match(/run-[a-z0-9]+/g)!.slice(-1);
    const snapshot = await host().as('owner').ended(runId!);
    expect(snapshot.nodeStates.greet.outputs).toEqual({ text: 'Hello Ada!' });
  });

  it('can be pasted twice: the key makes it the same run', async () => {
    const [first] = (await paste(walkThrough(), host().url)).match(/run-[a-z0-9]+/)!;
    const [second] = (await paste(walkThrough(), host().url)).match(/run-[a-z0-9]+/)!;
    expect(second).toBe(first);
  });
});
