import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { Cancel, Clock } from '../system/clock.ts';
import { jittered, type Link, openClient } from './postgres-connections.ts';

/** The channel of all hosts on a database. */
export const HINT_CHANNEL = 'capstan';
/** PostgreSQL limits a NOTIFY payload to 8000 bytes. */
const HINT_BYTES_MAX = 7_900;
/** How long to wait before the first attempt to reconnect, and at most. */
const RECONNECT_MS = 250;
const RECONNECT_MAX_MS = 4_000;

/**
 * Sends topics to other hosts with NOTIFY, batched, and receives theirs. A lost hint only delays a reader until its
 * next poll.
 */
export class Hints {
  readonly #link: Link;
  readonly #clock: Clock;
  readonly #send: (payload: string) => Promise<unknown>;
  readonly #origin = randomUUID();
  readonly #topics = new Set<string>();
  readonly #listeners: ((topic: string) => void)[] = [];
  #client: pg.Client | undefined;
  #cancel: Cancel = () => {};
  #isClosed = false;
  #isSending = false;

  constructor(link: Link, send: (payload: string) => Promise<unknown>) {
    this.#link = link;
    this.#clock = link.clock;
    this.#send = send;
    link.servers.onMove(() => this.#leave());
  }

  onTopic(listener: (topic: string) => void): void {
    this.#listeners.push(listener);
  }

  add(topics: readonly string[]): void {
    for (const topic of topics) this.#topics.add(topic);
    if (this.#isSending) return;
    this.#isSending = true;
    this.#clock.soon(() => void this.#flush());
  }

  /** A session that a pooler may give to others cannot listen; then readers poll. */
  async listen(): Promise<void> {
    if (this.#link.isPooled) return;
    // A LISTEN connection is idle for long periods, so the query timeout must not apply.
    const { client } = await openClient(this.#link, {}, { query_timeout: 0 });
    client.on('error', () => this.#onDisconnect(client));
    client.on('end', () => this.#onDisconnect(client));
    client.on('notification', ({ payload = '' }) => this.#onNotification(payload));
    try {
      await client.query(`LISTEN ${HINT_CHANNEL}`);
    } catch (error) {
      client.end().catch(() => {});
      throw error;
    }
    this.#client = client;
    if (this.#isClosed) await client.end();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    await this.#client?.end();
  }

  /** A server that was replaced may never close the connection, so nothing waits for that. */
  #leave(): void {
    const left = this.#client;
    if (!left) return;
    left.end().catch(() => {});
    this.#onDisconnect(left);
  }

  #onDisconnect(lost: pg.Client): void {
    if (this.#client !== lost) return;
    this.#client = undefined;
    this.#reconnectIn(RECONNECT_MS);
  }

  #reconnectIn(ms: number): void {
    if (this.#isClosed) return;
    this.#cancel = this.#clock.after(jittered(ms), () => {
      this.listen().catch(() => this.#reconnectIn(Math.min(ms * 2, RECONNECT_MAX_MS)));
    });
  }

  /** PostgreSQL also delivers a host's own notifications back to it; those are skipped. */
  #onNotification(payload: string): void {
    const [origin, ...topics] = payload.split(' ');
    if (origin === this.#origin) return;
    for (const topic of topics) for (const listener of this.#listeners) listener(topic);
  }

  /** What is added while a notification is on its way goes with the next one. */
  async #flush(): Promise<void> {
    while (this.#topics.size > 0) {
      let payload: string = this.#origin;
      for (const topic of this.#topics) {
        if (payload !== this.#origin && Buffer.byteLength(payload) + Buffer.byteLength(topic) >= HINT_BYTES_MAX) break;
        payload += ` ${topic}`;
        this.#topics.delete(topic);
      }
      await this.#send(payload).catch(() => {});
    }
    this.#isSending = false;
  }
}
