import { type Client, NotProvidedError, RefusedError, UnreachableError } from '../client/index.ts';
import { isObject } from '../protocol/format/json.ts';
import { isKeyId, PRINCIPALS_MAX, principalName } from '../protocol/trust/principals.ts';
import type { Context } from './command.ts';

/** Calls people by the person or name of their keys, as far as the host tells it to the caller. */
export class PrincipalNames {
  readonly #client: Client;
  readonly #isForPeople: boolean;
  /** By principal; a principal without a name stands for itself. */
  readonly #names = new Map<string, string>();

  constructor({ isJson, isQuiet }: Pick<Context, 'isJson' | 'isQuiet'>, client: Client) {
    this.#client = client;
    this.#isForPeople = !isJson && !isQuiet;
  }

  /** A copy of a value with names instead of ids of keys. Scripts get what the host sent, without another request. */
  async in<T>(value: T): Promise<T> {
    if (!this.#isForPeople) return value;
    const unknown = [...new Set(idsIn(value))].filter((id) => !this.#names.has(id));
    for (let index = 0; index < unknown.length; index += PRINCIPALS_MAX) {
      await this.#ask(unknown.slice(index, index + PRINCIPALS_MAX));
    }
    return this.#renamed(value) as T;
  }

  async #ask(principals: readonly string[]): Promise<void> {
    for (const principal of principals) this.#names.set(principal, principal);
    for (const named of await this.#listed(principals)) this.#names.set(named.principal, principalName(named));
  }

  /** Names are a courtesy: where they cannot be had, ids are shown. */
  async #listed(principals: readonly string[]) {
    try {
      return (await this.#client.listPrincipals({ principal: principals.join(',') })).items;
    } catch (error) {
      const isExpected = [RefusedError, NotProvidedError, UnreachableError].some((kind) => error instanceof kind);
      if (!isExpected) throw error;
      return [];
    }
  }

  #renamed(value: unknown): unknown {
    if (typeof value === 'string') return this.#names.get(value) ?? value;
    if (Array.isArray(value)) return value.map((item) => this.#renamed(item));
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, this.#renamed(member)]));
  }
}

function idsIn(value: unknown): string[] {
  if (typeof value === 'string') return isKeyId(value) ? [value] : [];
  if (Array.isArray(value)) return value.flatMap(idsIn);
  return isObject(value) ? Object.values(value).flatMap(idsIn) : [];
}
