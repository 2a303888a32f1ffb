import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freshFolder } from './database.ts';
import { freePort } from './free-port.ts';
import { unprivileged } from './postgres-server.ts';

/** Sessions of the server that all clients share: fewer than one host opens, so that transactions of several meet. */
const SESSIONS = 4;

/** The program, if there is one: on the PATH, or where `PGBOUNCER` says. */
export function pgbouncerProgram(): string | undefined {
  const program = process.env.PGBOUNCER || 'pgbouncer';
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return program;
  } catch {
    return undefined;
  }
}

/** A real PgBouncer in transaction mode, before one database. */
export class PgBouncer {
  readonly url: string;
  readonly #process: ChildProcess;
  readonly #remove: () => void;

  private constructor(url: string, process: ChildProcess, remove: () => void) {
    this.url = url;
    this.#process = process;
    this.#remove = remove;
  }

  static async open(program: string, targetUrl: string): Promise<PgBouncer> {
    const { hostname, port, username, password, pathname } = new URL(targetUrl);
    const folder = freshFolder();
    const listenPort = await freePort();
    const file = join(folder.path, 'pgbouncer.ini');
    const server = `host=${hostname} port=${port} user=${username} password=${password}`;
    await writeFile(
      file,
      [
        '[databases]',
        `${pathname.slice(1)} = ${server}`,
        '[pgbouncer]',
        'listen_addr = 127.0.0.1',
        `listen_port = ${listenPort}`,
        'unix_socket_dir =',
        'auth_type = any',
        'pool_mode = transaction',
        `default_pool_size = ${SESSIONS}`,
        'max_client_conn = 200',
        '',
      ].join('\n'),
    );
    await chmod(folder.path, 0o755);
    await chmod(file, 0o644);
    const { uid, gid } = unprivileged();
    if (uid !== undefined && gid !== undefined) await chown(file, uid, gid);
    // It refuses to run as root, too.
    const child = spawn(program, [file], { uid, gid, stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    await new Promise<void>((resolve, reject) => {
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        said += text;
        if (said.includes('process up')) resolve();
      });
      child.once('exit', (code) => reject(new Error(`PgBouncer ended with ${code}:\n${said}`)));
    });
    const url = new URL(targetUrl);
    url.port = String(listenPort);
    return new PgBouncer(url.href, child, folder.remove);
  }

  async close(): Promise<void> {
    const exit = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await exit;
    this.#remove();
  }
}
