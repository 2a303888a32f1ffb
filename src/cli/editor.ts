import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from './exit.ts';
import type { Terminal } from './terminal.ts';

/** Lets a person change a text in the editor that they have chosen, and gives what they leave. */
export async function edited({ environment }: Terminal, fileName: string, text: string): Promise<string> {
  const editor = environment.VISUAL || environment.EDITOR;
  if (!editor) throw new UsageError('There is no editor to revise it in: set EDITOR, or give --artifact-json.');
  const folder = await mkdtemp(join(tmpdir(), 'capstan-'));
  const file = join(folder, fileName);
  try {
    await writeFile(file, text, { mode: 0o600 });
    await opened(editor, file);
    return await readFile(file, 'utf8');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Settles when the person closes it. An editor may come with arguments of its own. */
function opened(editor: string, file: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(`${editor} ${JSON.stringify(file)}`, { shell: true, stdio: 'inherit' });
    child.once('error', reject);
    child.once('exit', (code) => {
      if (code === 0) resolve();
      else reject(new UsageError(`The editor ended with ${code ?? 'a signal'}. Nothing was done.`));
    });
  });
}
