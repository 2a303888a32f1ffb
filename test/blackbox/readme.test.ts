import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { freshFolder } from '../support/database.ts';
import { Desk } from '../support/desk.ts';
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

let desks = 0;
async function paste(lines: string, url: string): Promise<string> {
  desks += 1;
  const desk = new Desk(join(folder.path, `desk-${desks}`), { CAPSTAN_URL: url, CAPSTAN_KEY: KEYS.owner.key });
  const { code, shown } = await desk.paste(lines);
  expect(code, shown).toBe(0);
  return shown;
}

onOneStore('the walk-through of the README', (host) => {
  it('works when it is pasted', async () => {
    const shown = await paste(walkThrough(), host().url);
    expect(shown).toContain('event: run.completed');
    expect(shown).toContain('"status":"completed"');
    expect(shown).toContain('"id":"greeting"');
    expect(shown).toContain('Result of greet:\n  text: Hello Ada!\n');
  });

  it('can be pasted twice: the key makes it the same run', async () => {
    const [first] = (await paste(walkThrough(), host().url)).match(/run-[a-z0-9]+/)!;
    const [second] = (await paste(walkThrough(), host().url)).match(/run-[a-z0-9]+/)!;
    expect(second).toBe(first);
  });
});
