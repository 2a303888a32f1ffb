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
  note(name: SettingName, ...problems: readonly string[]): void {
    this.problems.push(...problems.map((problem) => SETTINGS[name].variable + problem));
  }

  /** Returns the raw text. */
  text(name: SettingName): string | undefined {
    return this.#values[name];
  }

  /** Parses an integer within bounds; returns `otherwise` when it is not set or invalid. */
  whole(name: SettingName, { otherwise, min, max }: { otherwise: number; min: number; max: number }): number {
    const text = this.#values[name];
    if (text === undefined) return otherwise;
    const value = /^[0-9]+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    this.note(name, ` must be a whole number from ${min} to ${max}.`);
    return otherwise;
  }

  /** Parses a boolean. */
  yes(name: SettingName, otherwise = false): boolean {
    const text = this.#values[name];
    if (text === undefined) return otherwise;
    if (text === '0' || text === 'false') return false;
    if (text === '1' || text === 'true') return true;
    this.note(name, ' must be 1 (or true) or 0 (or false).');
    return false;
  }

  /** Returns a text with a minimum length. */
  atLeast(name: SettingName, characters: number): string | undefined {
    const text = this.#values[name];
    if (text === undefined || text.length >= characters) return text;
    this.note(name, ` must have at least ${characters} characters.`);
    return undefined;
  }

  /** Returns a value from a fixed list. */
  oneOf<const T extends readonly string[]>(name: SettingName, allowed: T, otherwise: T[number]): T[number] {
    const text = this.#values[name];
    if (text === undefined || allowed.includes(text)) return text ?? otherwise;
    this.note(name, ` must be one of ${allowed.join(', ')}.`);
    return otherwise;
  }

  /** Returns an identifier: tenant, principal, key or workspace name. */
  name(name: SettingName): string | undefined {
    const text = this.#values[name];
    if (text === undefined || NAME.test(text)) return text;
    this.note(name, ' must have 1 to 128 characters from A-Z a-z 0-9 . _ ~ - :');
    return undefined;
  }

  /** Returns a URL with one of the given protocols. */
  url(name: SettingName, protocols: readonly string[]): string | undefined {
    const text = this.#values[name];
    if (text === undefined) return undefined;
    if (URL.canParse(text) && protocols.includes(new URL(text).protocol)) return text;
    this.note(name, ` must be a URL that starts with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}.`);
    return undefined;
  }
}
