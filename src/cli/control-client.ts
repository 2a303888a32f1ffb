import { join } from 'node:path';
import { text } from 'node:stream/consumers';

/** What the host said to a command; undefined if none is listening in this folder. */
type ControlAnswer = { readonly status: number; readonly message: string } | undefined;

const NOBODY: readonly unknown[] = ['ENOENT', 'ECONNREFUSED'];

/** Tells the host that uses a data folder to back its store up, and waits until it has. */
export function askForBackup(folder: string, file: string): Promise<ControlAnswer> {
  // An import would slow down every command by what only `fetch` needs.
  const { request } = process.getBuiltinModule('node:http');
  return new Promise((resolve, reject) => {
    const call = request({ socketPath: join(folder, 'control.sock'), method: 'POST', path: '/backup' });
    call.on('error', (error: NodeJS.ErrnoException) =>
      NOBODY.includes(error.code) ? resolve(undefined) : reject(error),
    );
    call.on('response', (response) => {
      text(response).then((body) => {
        const { message } = JSON.parse(body) as { message: string };
        resolve({ status: response.statusCode ?? 0, message });
      }, reject);
    });
    call.end(JSON.stringify({ file }));
  });
}
