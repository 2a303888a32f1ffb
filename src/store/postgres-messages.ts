import type { Param } from './sql.ts';

/** Bytes that a character takes at most. */
const BYTES_PER_CHARACTER = 3;
/** Characters from which on a text is measured before there is made room for it. */
const LONG_TEXT = 4_096;
const FIRST_BYTES = 8_192;
/** In the place of a length: the value is NULL. */
const NULL_VALUE = -1;

const CODE = { parse: 0x50, bind: 0x42, describe: 0x44, execute: 0x45, sync: 0x53 } as const;
const PORTAL = 0x50;

/**
 * Messages of PostgreSQL's extended query protocol, one after the other in one piece of memory, which leaves the process
 * with a single write. Everything is sent as text, and the portal is always the unnamed one.
 */
export class Messages {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES);
  #length = 0;

  /** What was written. */
  taken(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Has a statement prepared under a name; PostgreSQL finds out the types of its parameters. */
  parse(name: string, text: string): void {
    this.#message(CODE.parse, () => {
      this.#name(name);
      this.#name(text);
      this.#int16(0);
    });
  }

  /** Gives values to the parameters of a prepared statement. */
  bind(name: string, values: readonly Param[]): void {
    this.#message(CODE.bind, () => {
      this.#name('');
      this.#name(name);
      this.#int16(0);
      this.#int16(values.length);
      for (const value of values) this.#value(value);
      this.#int16(0);
    });
  }

  /** Asks for the columns of the rows to come. */
  describe(): void {
    this.#message(CODE.describe, () => {
      this.#byte(PORTAL);
      this.#name('');
    });
  }

  /** Has it executed, and asks for all rows. */
  execute(): void {
    this.#message(CODE.execute, () => {
      this.#name('');
      this.#int32(0);
    });
  }

  /** Ends the transaction. */
  sync(): void {
    this.#message(CODE.sync, () => {});
  }

  /** A message has its length, with that of the length itself, behind its code. */
  #message(code: number, write: () => void): void {
    this.#byte(code);
    const start = this.#length;
    this.#int32(0);
    write();
    this.#bytes.writeInt32BE(this.#length - start, start);
  }

  #value(value: Param): void {
    const start = this.#length;
    this.#int32(NULL_VALUE);
    if (value === null) return;
    this.#text(String(value));
    this.#bytes.writeInt32BE(this.#length - start - 4, start);
  }

  #name(text: string): void {
    this.#text(text);
    this.#byte(0);
  }

  #text(text: string): void {
    this.#makeRoom(text.length > LONG_TEXT ? Buffer.byteLength(text) : text.length * BYTES_PER_CHARACTER);
    this.#length += this.#bytes.write(text, this.#length);
  }

  #byte(value: number): void {
    this.#makeRoom(1);
    this.#length = this.#bytes.writeUInt8(value, this.#length);
  }

  #int16(value: number): void {
    this.#makeRoom(2);
    this.#length = this.#bytes.writeUInt16BE(value, this.#length);
  }

  #int32(value: number): void {
    this.#makeRoom(4);
    this.#length = this.#bytes.writeInt32BE(value, this.#length);
  }

  #makeRoom(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}
