import { NAME } from '../protocol/trust/keys.ts';
import { SETTINGS, type SettingName, type Values } from './settings.ts';

/** Reads single values and notes what is wrong with them. */
export class Reader {
  readonly #values: Values;
  readonly problems: string[] = [];

  constructor(values: Values) {
    this.#values = values;
  }

  /** What is wrong is said from behind the name of the setting on. */
  note(name: SettingName, ...problems: readonly string[]): void {
    this.problems.push(...problems.map((problem) => SETTINGS[name].variable + problem));
  }

  text(name: SettingName): string | undefined {
    return this.#values[name];
  }

  whole(name: SettingName, { otherwise, min, max }: { otherwise: number; min: number; max: number }): number {
    const text = this.#values[name];
    if (text === undefined) return otherwise;
    const value = /^[0-9]+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    this.note(name, ` must be a whole number from ${min} to ${max}.`);
    return otherwise;
  }

  yes(name: SettingName, otherwise = false): boolean {
    const text = this.#values[name];
    if (text === undefined) return otherwise;
    if (text === '0' || text === 'false') return false;
    if (text === '1' || text === 'true') return true;
    this.note(name, ' must be 1 or 0.');
    return false;
  }

  atLeast(name: SettingName, characters: number): string | undefined {
    const text = this.#values[name];
    if (text === undefined || text.length >= characters) return text;
    this.note(name, ` must have at least ${characters} characters.`);
    return undefined;
  }

  oneOf<const T extends readonly string[]>(name: SettingName, allowed: T, otherwise: T[number]): T[number] {
    const text = this.#values[name];
    if (text === undefined || allowed.includes(text)) return text ?? otherwise;
    this.note(name, ` must be one of ${allowed.join(', ')}.`);
    return otherwise;
  }

  name(name: SettingName): string | undefined {
    const text = this.#values[name];
    if (text === undefined || NAME.test(text)) return text;
    this.note(name, ' must be 1 to 128 of A-Z a-z 0-9 . _ ~ - :');
    return undefined;
  }

  url(name: SettingName, protocols: readonly string[]): string | undefined {
    const text = this.#values[name];
    if (text === undefined) return undefined;
    if (URL.canParse(text) && protocols.includes(new URL(text).protocol)) return text;
    this.note(name, ` must be a URL that begins with ${protocols.join(' or ')}//.`);
    return undefined;
  }
}
