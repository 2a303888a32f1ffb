import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { freePort } from './free-port.ts';
import { PostgresServer } from './postgres-server.ts';
import { scratchFolder } from './scratch.ts';

/** A primary and its synchronous standby: what the primary has acknowledged, the standby has on its disk. */
export class PostgresPair {
  #primary: PostgresServer;
  #standby: PostgresServer;

  private constructor(primary: PostgresServer, standby: PostgresServer) {
    this.#primary = primary;
    this.#standby = standby;
  }

  static async start(): Promise<PostgresPair> {
    const folder = join(scratchFolder(), `capstan-pair-${randomBytes(8).toString('hex')}`);
    const server = async (name: string): Promise<PostgresServer> =>
      new PostgresServer(`${folder}-${name}`, await freePort());
    const pair = new PostgresPair(await server('a'), await server('b'));
    try {
      await pair.#primary.initialise();
      await pair.#primary.start();
      await pair.addStandby();
      return pair;
    } catch (error) {
      await pair.remove();
      throw error;
    }
  }

  get primary(): PostgresServer {
    return this.#primary;
  }

  get standby(): PostgresServer {
    return this.#standby;
  }

  /** The URL of both, the present primary first. */
  get url(): string {
    const addresses = [this.#primary, this.#standby].map(({ address }) => address);
    return `${this.#primary.url.replace(addresses[0]!, addresses.join(','))}?target_session_attrs=read-write`;
  }

  /** Makes the other server a standby that every commit waits for. */
  async addStandby(): Promise<void> {
    await this.#standby.copyOf(this.#primary);
    await this.#standby.start();
    await this.#primary.withClient(async (client) => {
      await client.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
      await client.query('SELECT pg_reload_conf()');
      const isSynchronous = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'";
      while ((await client.query(isSynchronous)).rowCount === 0) await client.query('SELECT pg_sleep(0.02)');
    });
  }

  /** Promotes the standby; what was the primary becomes the one that may be a standby next. */
  async promote(): Promise<void> {
    await this.#standby.withClient((client) => client.query('SELECT pg_promote(true, 30)'));
    [this.#primary, this.#standby] = [this.#standby, this.#primary];
  }

  async remove(): Promise<void> {
    await Promise.all([this.#primary.remove(), this.#standby.remove()]);
  }
}
