import { rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { isObject } from '../protocol/format/json.ts';
import type { Log } from '../system/log.ts';
import { closeFileToOthers } from '../system/private-files.ts';

/** What an operator can tell the host to do. */
interface Controls {
  /** Copies the store into a new file; absent where the database has tools of its own for that. */
  readonly backup?: ((file: string) => Promise<void>) | undefined;
  readonly log: Pick<Log, 'warn' | 'info'>;
}

/** Name of the socket in the data folder. */
const CONTROL_SOCKET = 'control.sock';

/**
 * Listens on a socket in the data folder for commands of the operator. Only who may enter the folder reaches it, and who
 * may enter the folder can do all of this by hand. Without it the host works too.
 */
export async function openControlSocket(folder: string, controls: Controls): Promise<() => Promise<void>> {
  const path = join(folder, CONTROL_SOCKET);
  // The folder is ours: what is left there belonged to a process that has ended.
  rmSync(path, { force: true });
  // An import would also load what only `fetch` needs (undici): 30 ms and 10 MB.
  const { createServer } = process.getBuiltinModule('node:http');
  const server = createServer((request, response) => void answer(request, response, controls));
  try {
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(path, resolve));
    closeFileToOthers(path);
  } catch (error) {
    controls.log.warn(
      { err: error, path },
      'the control socket could not be opened; run `capstan backup` while the host is stopped',
    );
    return async () => {};
  }
  return async () => {
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  };
}

async function answer(request: IncomingMessage, response: ServerResponse, { backup, log }: Controls): Promise<void> {
  const say = (status: number, message: string): void => {
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify({ message }));
  };
  if (request.method !== 'POST' || request.url !== '/backup') return say(404, 'There is no such command.');
  if (!backup) return say(501, 'Back up this store with its own tools, such as pg_dump.');
  try {
    const body: unknown = JSON.parse(await text(request));
    if (!isObject(body) || typeof body.file !== 'string') return say(400, 'Name the file.');
    await backup(body.file);
    log.info({ file: body.file }, 'the store was backed up');
    say(200, 'done');
  } catch (error) {
    log.warn({ err: error }, 'a backup failed');
    say(500, (error as Error).message);
  }
}
