import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Cancel, Clock } from '../system/clock.ts';

/** The channel of all hosts on a database. */
export const HINT_CHANNEL = 'capstan';
/** PostgreSQL limits a NOTIFY payload to 8000 bytes. */
const HINT_BYTES_MAX = 7_900;
const RECONNECT_MS = 1_000;

/**
 * Sends topics to other hosts with NOTIFY, batched, and receives theirs. A lost hint only delays a reader until its
 * next poll.
 */
export class Hints {
  readonly #settings: pg.ClientConfig;
  readonly #clock: Clock;
  readonly #send: (payload: string) => Promise<unknown>;
  readonly #origin = randomUUID();
  readonly #topics = new Set<string>();
  readonly #listeners: ((topic: string) => void)[] = [];
  #client: pg.Client | undefined;
  #cancel: Cancel = () => {};
  #isClosed = false;

  constructor(settings: pg.ClientConfig, clock: Clock, send: (payload: string) => Promise<unknown>) {
    // A LISTEN connection is idle for long periods, so the query timeout must not apply.
    this.#settings = { ...settings, query_timeout: undefined } as pg.ClientConfig;
    this.#clock = clock;
    this.#send = send;
  }

  onTopic(listener: (topic: string) => void): void {
    this.#listeners.push(listener);
  }

  add(topics: readonly string[]): void {
    if (this.#topics.size === 0) this.#clock.soon(() => this.#flush());
    for (const topic of topics) this.#topics.add(topic);
  }

  async listen(): Promise<void> {
    const client = new pg.Client(this.#settings);
    client.on('error', () => this.#onDisconnect(client));
    client.on('end', () => this.#onDisconnect(client));
    client.on('notification', ({ payload = '' }) => this.#onNotification(payload));
    await client.connect();
    await client.query(`LISTEN ${HINT_CHANNEL}`);
    this.#client = client;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    await this.#client?.end();
  }

  #onDisconnect(lost: pg.Client): void {
    if (this.#isClosed || this.#client !== lost) return;
    this.#client = undefined;
    this.#scheduleReconnect();
  }

  #scheduleReconnect(): void {
    if (this.#isClosed) return;
    this.#cancel = this.#clock.after(RECONNECT_MS, () => {
      this.listen().catch(() => this.#scheduleReconnect());
    });
  }

  /** PostgreSQL also delivers a host's own notifications back to it; those are skipped. */
  #onNotification(payload: string): void {
    const [origin, ...topics] = payload.split(' ');
    if (origin === this.#origin) return;
    for (const topic of topics) for (const listener of this.#listeners) listener(topic);
  }

  #flush(): void {
    let payload = this.#origin as string;
    for (const topic of this.#topics) {
      if (payload.length + topic.length >= HINT_BYTES_MAX) {
        this.#send(payload).catch(() => {});
        payload = this.#origin;
      }
      payload += ` ${topic}`;
    }
    this.#topics.clear();
    this.#send(payload).catch(() => {});
  }
}
