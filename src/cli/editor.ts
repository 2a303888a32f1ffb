import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from './exit.ts';
import type { Terminal } from './terminal.ts';

/** Opens a text in $VISUAL or $EDITOR and returns the saved content. */
export async function editText({ environment }: Terminal, fileName: string, text: string): Promise<string> {
  const editor = environment.VISUAL || environment.EDITOR;
  if (!editor) throw new UsageError('No editor is configured. Set EDITOR, or use --artifact-json.');
  const folder = await mkdtemp(join(tmpdir(), 'capstan-'));
  const file = join(folder, fileName);
  try {
    await writeFile(file, text, { mode: 0o600 });
    await runEditor(editor, file);
    return await readFile(file, 'utf8');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Resolves when the editor exits. A shell runs it, because EDITOR may contain arguments. */
function runEditor(editor: string, file: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(`${editor} ${JSON.stringify(file)}`, { shell: true, stdio: 'inherit' });
    child.once('error', reject);
    child.once('exit', (code) => {
      if (code === 0) resolve();
      else reject(new UsageError(`The editor exited with ${code ?? 'a signal'}. Nothing was changed.`));
    });
  });
}
