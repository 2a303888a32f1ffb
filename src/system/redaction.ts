/**
 * Finds and removes what looks like a secret, in text and in JSON values.
 *
 * Texts come from callers, models and tools, so the time it takes must grow no faster than the text. Every pattern
 * keeps one of two promises: what can be of any length comes last, so that a failed attempt is short and a successful
 * one never reads anything twice; or it cannot run past a character with which the next attempt begins.
 */

export const REDACTED = '[REDACTED]';

/** Parts of a JSON value that are nested deeper than this are not looked at but replaced. */
export const REDACTION_DEPTH_MAX = 256;

type Redact = (text: string) => string;

/** The text with everything that looks like a secret replaced; the text itself when there is nothing. */
export function redactText(text: string): string {
  let result = text;
  for (const rule of RULES) {
    if (rule.mark && !rule.mark.test(result)) continue;
    result = result.replace(rule.pattern, (match: string, kept: string, at: number, whole: string) => {
      const found = { secret: match.slice(kept.length), kept, next: whole.charAt(at + match.length) };
      return !rule.isSecret || rule.isSecret(found) ? kept + REDACTED : match;
    });
  }
  return result;
}

export function looksSecret(text: string): boolean {
  return redactText(text) !== text;
}

/** The JSON value with secrets replaced in its strings and its keys; the very same value when there are none. */
export function redactValue<T>(value: T, redact: Redact = redactText): T {
  return redactPart(value, redact, 0) as T;
}

/** Where the first secret of a JSON value is, such as `nodes[2].config.apiKey`; `$` when the value itself is one. */
export function findSecret(value: unknown): string | undefined {
  return findPart(value, 0)?.replace(/^\./, '').replace(/^$/, '$');
}

/** Replaces the values the host itself resolved by `[REDACTED:<id>]`, then everything else that looks like a secret. */
export function secretRedactor(secrets: readonly { id: string; value: string }[]): Redact {
  const markers = new Map<string, string>();
  for (const { id, value } of secrets) {
    if (value.length < KNOWN_LENGTH_MIN) continue;
    for (const spelling of spellingsOf(value)) markers.set(spelling, `[REDACTED:${id}]`);
  }
  if (markers.size === 0) return redactText;
  // One pass, longest first: a value may be part of another one, or of the marker of another one.
  const longestFirst = [...markers.keys()].sort((a, b) => b.length - a.length);
  const known = new RegExp(longestFirst.map(escapePattern).join('|'), 'g');
  return (text) => redactText(text.replace(known, (value) => markers.get(value)!));
}

/** Shorter values would also remove innocent words. */
const KNOWN_LENGTH_MIN = 6;

/** A value as it is, inside JSON text and inside a URL. */
function spellingsOf(value: string): string[] {
  return [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value.toWellFormed())];
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}

function redactPart(value: unknown, redact: Redact, depth: number): unknown {
  if (typeof value === 'string') return redact(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth === REDACTION_DEPTH_MAX) return REDACTED;
  return Array.isArray(value) ? redactItems(value, redact, depth) : redactFields(value, redact, depth);
}

function redactItems(items: unknown[], redact: Redact, depth: number): unknown[] {
  let copy: unknown[] | undefined;
  for (let index = 0; index < items.length; index++) {
    const item = redactPart(items[index], redact, depth + 1);
    if (item === items[index]) continue;
    copy ??= items.slice();
    copy[index] = item;
  }
  return copy ?? items;
}

function redactFields(fields: object, redact: Redact, depth: number): object {
  const entries = Object.entries(fields);
  let changed = false;
  for (const entry of entries) {
    const [key, value] = entry;
    entry[0] = redact(key);
    entry[1] = isNamedSecret(key, value) ? redactNamed(value) : redactPart(value, redact, depth + 1);
    changed ||= entry[0] !== key || entry[1] !== value;
  }
  return changed ? Object.fromEntries(withDistinctKeys(entries)) : fields;
}

/** Two redacted keys must not become one: the second value would replace the first. */
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

function findPart(value: unknown, depth: number): string | undefined {
  if (typeof value === 'string') return looksSecret(value) ? '' : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth === REDACTION_DEPTH_MAX) return '';
  for (const [key, part] of Object.entries(value)) {
    const inner = looksSecret(key) || isNamedSecret(key, part) ? '' : findPart(part, depth + 1);
    if (inner !== undefined) return (Array.isArray(value) ? `[${key}]` : fieldStep(key)) + inner;
  }
  return undefined;
}

/** The path is shown to callers, so a key that is a secret does not appear in it. */
function fieldStep(key: string): string {
  return /^[\w$-]+$/.test(key) && !looksSecret(key) ? `.${key}` : `[${JSON.stringify(redactText(key))}]`;
}
