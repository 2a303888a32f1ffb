import { NAME } from '../protocol/trust/keys.ts';
import { SETTINGS, type SettingName, type Values } from './settings.ts';

/** Parses setting values and collects every problem, so that all are reported at once. */
export class Reader {
  readonly #values: Values;
  readonly problems: string[] = [];

  constructor(values: Values) {
    this.#values = values;
  }

  /** Records problems; each text is appended to the name of the variable. */
  addProblem(name: SettingName, ...problems: readonly string[]): void {
    this.problems.push(...problems.map((problem) => SETTINGS[name].variable + problem));
  }

  /** Returns the raw text. */
  text(name: SettingName): string | undefined {
    return this.#values[name];
  }

  /** Parses an integer within bounds; returns `fallback` when it is not set or invalid. */
  integer(name: SettingName, { fallback, min, max }: { fallback: number; min: number; max: number }): number {
    const text = this.#values[name];
    if (text === undefined) return fallback;
    const value = /^[0-9]+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    this.addProblem(name, ` must be a whole number from ${min} to ${max}.`);
    return fallback;
  }

  /** Parses a boolean. */
  boolean(name: SettingName, fallback = false): boolean {
    const text = this.#values[name];
    if (text === undefined) return fallback;
    if (text === '0' || text === 'false') return false;
    if (text === '1' || text === 'true') return true;
    this.addProblem(name, ' must be 1 (or true) or 0 (or false).');
    return false;
  }

  /** Returns a text with a minimum length. */
  minLength(name: SettingName, characters: number): string | undefined {
    const text = this.#values[name];
    if (text === undefined || text.length >= characters) return text;
    this.addProblem(name, ` must have at least ${characters} characters.`);
    return undefined;
  }

  /** Returns a value from a fixed list. */
  oneOf<const T extends readonly string[]>(name: SettingName, allowed: T, fallback: T[number]): T[number] {
    const text = this.#values[name];
    if (text === undefined || allowed.includes(text)) return text ?? fallback;
    this.addProblem(name, ` must be one of ${allowed.join(', ')}.`);
    return fallback;
  }

  /** Returns an identifier: tenant, principal, key or workspace name. */
  name(name: SettingName): string | undefined {
    const text = this.#values[name];
    if (text === undefined || NAME.test(text)) return text;
    this.addProblem(name, ' must have 1 to 128 characters from A-Z a-z 0-9 . _ ~ - :');
    return undefined;
  }

  /** Returns a URL with one of the given protocols. */
  url(name: SettingName, protocols: readonly string[]): string | undefined {
    const text = this.#values[name];
    if (text === undefined) return undefined;
    if (URL.canParse(text) && protocols.includes(new URL(text).protocol)) return text;
    this.addProblem(
      name,
      ` must be a URL that starts with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}.`,
    );
    return undefined;
  }
}
