/**
 * Finds and removes what looks like a secret, in text and in JSON values.
 *
 * Texts come from callers, models and tools, so matching must take linear time. Every pattern guarantees this in one of
 * two ways. Either its unbounded part comes last: a failed attempt is short, and matched text is not scanned again. Or
 * an attempt cannot run past the character at which the next one begins.
 */

import { decodesToPair, isCredential, isPlaceholder, isSecretValue, withoutTemplates } from './secret-values.ts';
import { anyOf, KEYED_PREFIX, MARKED_TOKENS, PLAIN_TOKENS, type Tokens } from './token-shapes.ts';

/** What a secret is replaced with. */
export const REDACTED = '[REDACTED]';

/**
 * A longer text is replaced entirely if anything in it looks suspicious, because long matches exhaust the stack of the
 * regular expression engine.
 */
export const REDACTION_LENGTH_MAX = 2_000_000;

/** Parts of a JSON value nested deeper than this are replaced without being examined. */
export const REDACTION_DEPTH_MAX = 256;

type Redact = (text: string) => string;

/** Replaces everything in a text that looks like a secret. Idempotent: redacting the result again changes nothing. */
export function redactText(text: string): string {
  return ANY_CLUE.test(text) ? redactSearchable(text, applyRules) : text;
}

/** Replaces a text completely if it is too long to be searched for secrets. */
function redactSearchable(text: string, redact: Redact): string {
  if (text.length > REDACTION_LENGTH_MAX) return REDACTED;
  try {
    return redact(text);
  } catch (error) {
    // How long a match may be before it exhausts the stack depends on how V8 compiled the pattern.
    if (error instanceof RangeError) return REDACTED;
    throw error;
  }
}

/** Whether a text contains something that looks like a secret. */
export function looksSecret(text: string): boolean {
  return redactText(text) !== text;
}

/** Replaces secrets in the strings and keys of a JSON value; returns the same object if there are none. */
export function redactValue<T>(value: T, redact: Redact = redactText): T {
  return redactPart(value, redact, 0, '') as T;
}

/**
 * Finds the path of the first secret in a JSON value, such as `nodes[2].config.apiKey`; `$` if the value itself is one.
 */
export function findSecret(value: unknown): string | undefined {
  const path = findPart(value, 0, '');
  return path === '' ? '$' : path?.replace(/^\./, '');
}

/**
 * Makes a redactor that replaces the given resolved secrets by `[REDACTED:<id>]`, and then everything else that looks
 * like a secret.
 */
export function secretRedactor(secrets: readonly { id: string; value: string }[]): Redact {
  const markers = new Map<string, string>();
  for (const { id, value } of secrets) {
    if (value.length < KNOWN_LENGTH_MIN) continue;
    for (const spelling of spellingsOf(value)) markers.set(spelling, `[REDACTED:${id}]`);
  }
  if (markers.size === 0) return redactText;
  // One pass, longest first, because one value may be part of another, or of the marker that replaces it.
  const longestFirst = [...markers.keys()].sort((a, b) => b.length - a.length);
  const known = new RegExp(longestFirst.map(escapePattern).join('|'), 'g');
  return (text) => redactText(text.replace(known, (value) => markers.get(value)!));
}

/** Shorter secrets are not replaced, because they would also match ordinary words. */
const KNOWN_LENGTH_MIN = 6;

/** A value verbatim, as escaped in JSON text and as escaped in a URL. */
function spellingsOf(value: string): string[] {
  return [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value.toWellFormed())];
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

function redactPart(value: unknown, redact: Redact, depth: number, name: string): unknown {
  if (typeof value === 'string') return redactNamed(name, redact(value));
  if (typeof value !== 'object' || value === null) return value;
  if (depth === REDACTION_DEPTH_MAX) return REDACTED;
  return Array.isArray(value) ? redactItems(value, redact, depth, name) : redactFields(value, redact, depth, name);
}

function redactItems(items: unknown[], redact: Redact, depth: number, name: string): unknown[] {
  let copy: unknown[] | undefined;
  for (let index = 0; index < items.length; index++) {
    const item = redactPart(items[index], redact, depth + 1, nameOf(items, String(index), name));
    if (Object.is(item, items[index])) continue;
    copy ??= items.slice();
    copy[index] = item;
  }
  return copy ?? items;
}

function redactFields(fields: object, redact: Redact, depth: number, name: string): object {
  const values = fields as Readonly<Record<string, unknown>>;
  const keys = Object.keys(values);
  let copy: [string, unknown][] | undefined;
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index]!;
    const value = values[key];
    const part = redactPart(value, redact, depth + 1, nameOf(values, key, name));
    const shown = redact(key);
    if (shown !== key || !Object.is(part, value)) {
      copy ??= keys.slice(0, index).map((clean) => [clean, values[clean]]);
    }
    copy?.push([shown, part]);
  }
  return copy ? Object.fromEntries(withDistinctKeys(copy)) : fields;
}

/**
 * The name of a part: the key of a field, the name of the list for an item. The exceptions are `["x-api-key", "…"]`,
 * `{"name": "x-api-key", "value": "…"}` and `{"apiKey": {"value": "…"}}`.
 */
function nameOf(whole: object, key: string, name: string): string {
  if (Array.isArray(whole)) return key === '1' && isPair(whole) ? whole[0] : name;
  if (key !== 'value') return key;
  return 'name' in whole && typeof whole.name === 'string' ? whole.name : name;
}

/** A list of two names looks the same, but names are short. What is redacted anyway does not make a value long. */
function isPair(items: unknown[]): items is [string, string] {
  const [name, value] = items;
  if (items.length !== 2 || typeof name !== 'string' || typeof value !== 'string') return false;
  return SECRET_KEY.test(name) && withoutTemplates(redactText(value)).length >= OPAQUE_LENGTH_MIN;
}

/** Numbers redacted keys that became equal; otherwise the second value would overwrite the first. */
function withDistinctKeys(entries: [string, unknown][]): [string, unknown][] {
  const taken = new Set<string>();
  let count = 1;
  return entries.map(([key, value]) => {
    let distinct = key;
    while (taken.has(distinct)) distinct = `${key} ${++count}`;
    taken.add(distinct);
    return [distinct, value];
  });
}

function findPart(value: unknown, depth: number, name: string): string | undefined {
  if (typeof value === 'string') return looksSecret(value) || redactNamed(name, value) !== value ? '' : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth === REDACTION_DEPTH_MAX) return '';
  for (const [key, part] of Object.entries(value)) {
    const rest = looksSecret(key) ? '' : findPart(part, depth + 1, nameOf(value, key, name));
    if (rest !== undefined) return (Array.isArray(value) ? `[${key}]` : stepTo(key)) + rest;
  }
  return undefined;
}

/** One step of a path. Paths are shown to callers, so a key that is itself a secret is redacted. */
function stepTo(key: string): string {
  const shown = redactText(key);
  return /^[\w$-]+$/.test(shown) ? `.${shown}` : `[${JSON.stringify(shown)}]`;
}

/**
 * Names of secrets, also as the end of a longer name (`OPENAI_API_KEY`). `token` alone is too general. In the plural,
 * tokens are often counted and secrets referred to.
 */
const SECRET_NAMES = [
  /passw(?:or)?ds?|passphrases?|pwd|secret|authorization/,
  /(?:access|account|api|auth|encryption|master|private|secret|signing)[-_. ]?keys?|secret[-_. ]?key[-_. ]?base/,
  /(?:access|api|auth|bearer|bot|id|oauth|refresh|security|session|github|gitlab|npm|slack|hf|vault)[-_. ]?token/,
];
/** The name may be numbered, as `PASSWORD_1` and `apiKey2` are. */
const SECRET_NAME = `${inAnyCase(anyOf(SECRET_NAMES))}(?:[-_]?\\d{1,2})?`;
const SECRET_KEY = new RegExp(`${SECRET_NAME}$`);
const AUTHORIZATION = inAnyCase('authorization');

/**
 * Where a token may begin: not inside a word, but directly after an escape that ends in a letter (`\n`, `%3D`, a
 * terminal colour).
 */
const START = /(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|\[[0-9;]{0,8}m))/.source;

/** The characters between a name and its value, including the escaped quotes of JSON inside JSON. */
const CLOSING = /["'`*\]\\]{0,6}[ \t]{0,8}/.source;
const ASSIGNMENT = /(?:[:=]{1,3}>?|>|%3[ADad]|\\{1,4}u003[ADad])/.source;
const NEWLINE = /(?:\r?\n|\\{1,4}n)/.source;
const GAP = /(?:\s|\\{1,4}[nrt]){0,32}/.source;
const QUOTE = /\\{0,4}["'`]/.source;
const VALUE_KEY = `${QUOTE}value${QUOTE}[ \\t]{0,8}:`;
/** The value may be the first of a list, or the field `value` of an object. */
const OPENING = `[ \\t]{0,8}(?:(?:\\[|\\{${GAP}${VALUE_KEY})${GAP}${QUOTE}|\\\\{0,4}["'\`]?)`;
const SCHEME = `${inAnyCase('(?:bearer|basic|token|apikey)')}[ \\t]{1,4}`;
const ENDS_IN_SCHEME = new RegExp(`${SCHEME}$`);
const STARTS_WITH_SCHEME = new RegExp(`^${SCHEME}`);
const BEARER_OR_BASIC = inAnyCase('(?:bearer|basic)');

/** Less long values are often words where the text around them says little. */
const OPAQUE_LENGTH_MIN = 16;
/** Under the name `authorization`, any word before a long value is a scheme. */
const ANY_SCHEME = `[A-Za-z][A-Za-z-]{0,15}[ \\t]{1,4}(?=[^\\s[]{${OPAQUE_LENGTH_MIN}})`;
const STARTS_WITH_ANY_SCHEME = new RegExp(`^${ANY_SCHEME}`);

/** What is before the name in an option of a command line, such as `--db-password`. */
const OPTION = /(?<!-)--(?:[\w-]{0,32}[-_])?/.source;

/** A value up to its closing quote or, unquoted, up to a character that cannot be part of it. */
const VALUE = /(?<=")[^\s"]*[^\s"\\]|(?<=')[^\s']*[^\s'\\]|(?<=`)[^\s`]*[^\s`\\]|[^\s"'`\\<>{}[\],;&|]+/.source;

const PEM_BEGIN = /-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----/.source;
const PEM_REST = /[^-]*(?:-(?!----)[^-]*)*-----END [A-Z0-9 ]{0,48}-----/.source;
/** A truncated key: header lines and lines of base64, for as long as they continue. */
const PEM_LINES = /(?:(?:\s|\\[nrt])+(?:[A-Z][A-Za-z-]{2,20}: [^\r\n\\]{1,80}|[A-Za-z0-9+/=]{16,}))+/.source;

const URL_USER = /:\/\/[^\s/?#@:"'`<>\\]{0,256}:/;
const URL_PASSWORD = /[^\s/?#"'`<>\\]+(?=@)/.source;

interface Rule {
  /**
   * A fast pre-check that matches every text the pattern matches. Many search for a rare character first and look
   * behind it.
   */
  clue: RegExp;
  /** Its one group is the part before the secret, which is kept. */
  pattern: RegExp;
  /** A final check on a match; without one, every match is a secret. */
  isSecret?: (found: Found) => boolean;
}

interface Found {
  secret: string;
  kept: string;
  next: string;
}

/** A clue of every assignment to the name of a secret: the character in it that all spellings have. */
const ASSIGNED = new RegExp(`(?:[:=>]|3(?<=%3|\\\\u003))(?<=${SECRET_NAME}${CLOSING}(?:[:=>]|%3|\\\\u003))`);

const RULES: readonly Rule[] = [
  {
    clue: new RegExp(PEM_BEGIN),
    pattern: pattern('', `${PEM_BEGIN}(?:${PEM_REST}|${PEM_LINES})`),
  },
  {
    clue: /\.(?<=eyJ[\w-]{0,65536}\.)/,
    pattern: pattern('', `eyJ(?<=${START}eyJ)[\\w.-]{20,}`),
    isSecret: isWebToken,
  },
  {
    clue: new RegExp(`[-_.:/](?<=${START}${beginnings(MARKED_TOKENS)})(?=[\\w+/=.-]{8})`),
    pattern: tokenPattern(MARKED_TOKENS),
  },
  {
    clue: new RegExp(START + beginnings(PLAIN_TOKENS)),
    pattern: tokenPattern(PLAIN_TOKENS),
  },
  {
    clue: new RegExp(`[/=](?<=${anyOf(KEYED_PREFIX)})`),
    pattern: pattern(anyOf(KEYED_PREFIX), '[\\w%+/=-]{20,}'),
  },
  {
    clue: URL_USER,
    pattern: pattern(URL_USER.source, URL_PASSWORD),
    isSecret: ({ secret }) => !isPlaceholder(secret),
  },
  {
    clue: new RegExp(`${BEARER_OR_BASIC}[ \\t%]`),
    pattern: pattern(`${BEARER_OR_BASIC}(?<=${START}${BEARER_OR_BASIC})(?:[ \\t]|%20){1,4}`, '[\\w.~+/=-]{6,}'),
    isSecret: isSchemeSecret,
  },
  {
    clue: /(?<!-)--(?=[A-Za-z])/,
    pattern: pattern(`${SECRET_NAME}(?<=${OPTION}${SECRET_NAME})[ \\t]{1,4}(?!--)["'\`]?`, VALUE),
    isSecret: isAssignedSecret,
  },
  {
    clue: ASSIGNED,
    pattern: pattern(`${AUTHORIZATION}${CLOSING}${ASSIGNMENT}${OPENING}${ANY_SCHEME}(?:token=${QUOTE})?`, VALUE),
    isSecret: isAssignedSecret,
  },
  {
    clue: ASSIGNED,
    pattern: pattern(`${SECRET_NAME}${CLOSING}:[ \\t]{0,8}${NEWLINE}[ \\t]{1,32}(?![\\w.-]{1,64}:)["']?`, VALUE),
    isSecret: (found) => /^["'\r\n\\]?$/.test(found.next) && isAssignedSecret(found),
  },
  {
    clue: new RegExp(`,(?<=${SECRET_NAME}${QUOTE},)`),
    pattern: pattern(`${SECRET_NAME}${QUOTE},${GAP}(?:${VALUE_KEY}[ \\t]{0,8})?${QUOTE}(?:${SCHEME})?`, VALUE),
    isSecret: isPairedSecret,
  },
  {
    clue: ASSIGNED,
    pattern: pattern(`${SECRET_NAME}${CLOSING}${ASSIGNMENT}${OPENING}(?:${SCHEME})?`, VALUE),
    isSecret: isAssignedSecret,
  },
];

const ANY_CLUE = new RegExp(anyOf([...new Set(RULES.map((rule) => rule.clue))]));

/** Passes over a text: what a replacement leaves behind may look like a secret of another rule. */
const PASSES_MAX = 6;

function applyRules(text: string): string {
  let result = text;
  for (let passes = 0; passes < PASSES_MAX; passes++) {
    const next = applyOnce(result);
    if (next === result) break;
    result = next;
  }
  return result;
}

function applyOnce(text: string): string {
  return RULES.reduce((result, rule) => (rule.clue.test(result) ? applyRule(rule, result) : result), text);
}

function applyRule({ pattern, isSecret }: Rule, text: string): string {
  return text.replace(pattern, (match: string, kept: string, at: number) => {
    const found = { secret: match.slice(kept.length), kept, next: text.charAt(at + match.length) };
    return !isSecret || isSecret(found) ? kept + REDACTED : match;
  });
}

function pattern(kept: string, secret: string): RegExp {
  return new RegExp(`(${kept})(?:${secret})`, 'g');
}

function tokenPattern(tokens: Tokens): RegExp {
  const whole = Object.values(tokens).map(([beginning, rest]) => beginning.source + rest.source);
  return pattern('', `${START}(?:${whole.join('|')})`);
}

function beginnings(tokens: Tokens): string {
  return anyOf(Object.values(tokens).map(([beginning]) => beginning));
}

/**
 * The source of a pattern whose small letters stand for themselves and for their capitals. The modifier `(?i:)` is no
 * alternative: a long-lived process may come to compile patterns without optimization (V8 does so while there is more
 * than 1 MB of code for patterns and more than 16 MB of executable memory), and such a pattern does not match capitals.
 */
function inAnyCase(source: string): string {
  return source.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
}

/**
 * JSON Web Tokens: signed, unsigned or encrypted. Two-part tokens are left alone, because our own signed links have two
 * parts.
 */
function isWebToken({ secret }: Found): boolean {
  const parts = secret.split('.');
  return parts[1]?.startsWith('eyJ') === true || parts.filter((part) => part !== '').length >= 3;
}

/** Distinguishes credentials from prose such as `Bearer authentication` and `Basic JavaScript`. */
function isSchemeSecret({ secret, kept }: Found): boolean {
  return /^basic/i.test(kept) ? decodesToPair(secret) : isSecretValue(secret);
}

function isAssignedSecret({ secret, kept, next }: Found): boolean {
  const isSentence = /["'`]$/.test(kept) && /\s/.test(next);
  return !isSentence && (ENDS_IN_SCHEME.test(kept) ? isCredential(secret) : isSecretValue(secret));
}

/** A name and a value may be separated by a comma; so are the items of a list of names, unless a key says otherwise. */
function isPairedSecret(found: Found): boolean {
  const hasKey = /:[ \t]{0,8}\\{0,4}["'`]/.test(found.kept);
  return (hasKey || withoutTemplates(found.secret).length >= OPAQUE_LENGTH_MIN) && isAssignedSecret(found);
}

/** Replaces a text that is a secret because of its name. */
function redactNamed(name: string, text: string): string {
  return SECRET_KEY.test(name) ? redactSearchable(text, (value) => redactCredential(name, value)) : text;
}

function redactCredential(name: string, text: string): string {
  const scheme = schemeOf(name, text);
  const rest = text.slice(scheme.length);
  const isSecret = STARTS_WITH_SCHEME.test(text) ? isCredential(rest) : isSecretValue(rest);
  return isSecret ? scheme + REDACTED : text;
}

function schemeOf(name: string, text: string): string {
  const known = STARTS_WITH_SCHEME.exec(text);
  return (known ?? (/authorization$/i.test(name) ? STARTS_WITH_ANY_SCHEME.exec(text) : null))?.[0] ?? '';
}
