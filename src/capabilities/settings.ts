import { NAME } from '../protocol/trust/keys.ts';
import { parseDatabaseUrl } from '../store/database-url.ts';

/** The environment as it was when the host started. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable that an operator may set. `capstan serve --help` prints these. */
export interface Variable {
  readonly variable: string;
  readonly flag?: string;
  readonly meaning: string;
}

/** The settings of one capability: its variables, and how they are read and checked. */
export interface SettingsSlice<Values extends object> {
  readonly variables: Readonly<Record<string, Variable>>;
  readonly read: (source: SettingsSource) => Values;
}

/** Defines a slice; `read` may use only the names that `variables` declares. */
export function defineSettings<Name extends string, Values extends object>(slice: {
  readonly variables: Readonly<Record<Name, Variable>>;
  readonly read: (read: SettingsReader<Name>) => Values;
}): SettingsSlice<Values> {
  const { variables, read } = slice;
  return { variables, read: (source) => read(new SettingsReader(variables, source)) };
}

/** What is set, and where problems with it are collected. */
export interface SettingsSource {
  /** Flags win over the environment. */
  text(name: string, variable: Variable): string | undefined;
  readonly environment: Environment;
  readonly problems: Set<string>;
}

/** Reads single settings of a slice and collects every problem, not only the first. */
export class SettingsReader<Name extends string> {
  readonly #variables: Readonly<Record<Name, Variable>>;
  readonly #source: SettingsSource;

  constructor(variables: Readonly<Record<Name, Variable>>, source: SettingsSource) {
    this.#variables = variables;
    this.#source = source;
  }

  get environment(): Environment {
    return this.#source.environment;
  }

  /** Reads the slice of another capability; its problems are reported once. */
  of<Values extends object>(slice: SettingsSlice<Values>): Values {
    return slice.read(this.#source);
  }

  /** The name of the environment variable, for messages. */
  variableOf(name: Name): string {
    return this.#variables[name].variable;
  }

  /** Reports problems; each text follows the variable's name, and the flag that sets the same. */
  report(name: Name, ...problems: readonly string[]): void {
    const [flag] = this.#variables[name].flag?.split(' ') ?? [];
    const subject = this.variableOf(name) + (flag === undefined ? '' : ` (${flag})`);
    for (const problem of problems) this.#source.problems.add(subject + problem);
  }

  text(name: Name): string | undefined {
    return this.#source.text(name, this.#variables[name]);
  }

  integer(name: Name, { otherwise, min, max }: { otherwise: number; min: number; max: number }): number {
    const text = this.text(name);
    if (text === undefined) return otherwise;
    const value = /^-?[0-9]+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    this.report(name, ` must be a whole number from ${min} to ${max}.`);
    return otherwise;
  }

  boolean(name: Name, otherwise = false): boolean {
    const text = this.text(name);
    if (text === undefined) return otherwise;
    if (text === '0' || text === 'false') return false;
    if (text === '1' || text === 'true') return true;
    this.report(name, ' must be 1 (or true) or 0 (or false).');
    return false;
  }

  /** A text that must have a minimum length, such as a secret. */
  textOfLength(name: Name, charactersMin: number): string | undefined {
    const text = this.text(name);
    if (text === undefined || text.length >= charactersMin) return text;
    this.report(name, ` must have at least ${charactersMin} characters.`);
    return undefined;
  }

  oneOf<const T extends readonly string[]>(name: Name, allowed: T, otherwise: T[number]): T[number] {
    const text = this.text(name);
    if (text === undefined || allowed.includes(text)) return text ?? otherwise;
    this.report(name, ` must be one of ${allowed.join(', ')}.`);
    return otherwise;
  }

  /** An identifier: letters, digits and a few separators. */
  identifier(name: Name): string | undefined {
    const text = this.text(name);
    if (text === undefined || NAME.test(text)) return text;
    this.report(name, ' must have 1 to 128 characters from A-Z a-z 0-9 . _ ~ - :');
    return undefined;
  }

  /** Texts separated by commas. `problemWith` says what is wrong with one; then there are none. */
  list(name: Name, problemWith: (text: string) => string | undefined): readonly string[] {
    const texts = (this.text(name) ?? '').split(',').map((text) => text.trim());
    const given = texts.filter((text) => text !== '');
    const problems = given.flatMap((text) => problemWith(text) ?? []);
    this.report(name, ...problems);
    return problems.length === 0 ? given : [];
  }

  url(name: Name, protocols: readonly string[]): string | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (URL.canParse(text) && protocols.includes(new URL(text).protocol)) return text;
    this.report(name, ` must be a URL that starts with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}.`);
    return undefined;
  }

  /** The URL of a PostgreSQL database, which may have several servers. */
  databaseUrl(name: Name): string | undefined {
    const text = this.text(name);
    const parsed = text === undefined ? undefined : parseDatabaseUrl(text);
    if (typeof parsed !== 'string') return text;
    this.report(name, parsed);
    return undefined;
  }
}

/** One slice with the settings of two: for a capability that also depends on settings of another. */
export function joinSettings<A extends object, B extends object>(
  a: SettingsSlice<A>,
  b: SettingsSlice<B>,
): SettingsSlice<A & B> {
  return {
    variables: { ...a.variables, ...b.variables },
    read: (source) => ({ ...a.read(source), ...b.read(source) }),
  };
}
