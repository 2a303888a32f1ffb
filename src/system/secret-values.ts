import { anyOf } from './token-shapes.ts';

/** Tells secret values from words, placeholders and references. Values of any length are examined in linear time. */

/** Shorter values are not secrets: `hunter2` is a password, `v2` and `12` are not. */
const VALUE_LENGTH_MIN = 6;
const CREDENTIAL_LENGTH_MIN = 8;
/** Number of characters of a long value that are examined. */
const SAMPLE_LENGTH_MAX = 256;

/** Words and small numbers, such as `client-credentials`, `YOUR_API_KEY` or `openai-key-2`. */
const WORDS = /^[A-Za-z]*(?:[-_.:/@]+(?:[A-Za-z]+|\d{1,4}))*[-_.:/?)=]*$/;
/** Random letters exceed this entropy from about two dozen characters on; identifiers stay below it at any length. */
const WORDS_ENTROPY_MIN = 4.25;

/**
 * A placeholder to be filled in, or one that marks an earlier redaction; the surrounding text is examined without it.
 */
const TEMPLATE = /\{\{[^{}]{0,256}\}\}|\$?\{[^{}\s]{0,256}\}|\[redacted[^[\]]{0,256}\]/gi;
const PLACEHOLDER = /^(?:[*•.xX#_-]*|\$[A-Za-z_.][\w.]*|%\w+%?)$/;

/** A value that says where a secret is, how it is computed or what its digest is, and so is not the secret. */
const REFERENCE = new RegExp(
  anyOf([
    /^(?:arn|aws|azure|gcp|keychain|kms|op|ssm|urn|vault):[^=?]*$/,
    /^(?:cred|credential|env|file|https?|ref|secret|secretRef|secrets|sha\d{3}):[^=?]*$/,
    /^cred_\w*$/,
    /^projects\/[^=]*$/,
    /^(?:~|\.{1,2})?(?:\/[a-z0-9._-]+)+\/?$/,
    /^[a-z_$][\w$]{0,23}(?:\??\.[A-Za-z_$][\w$]{0,23})+$/,
    /^[\w$.?]{0,64}\(/,
  ]),
);

/** Whether a value is nothing but a placeholder, such as `***` or `$PASSWORD`. */
export function isPlaceholder(text: string): boolean {
  return PLACEHOLDER.test(withoutTemplates(text));
}

/** After the name of an authentication scheme nearly anything is a credential, including readable words. */
export function isCredential(text: string): boolean {
  return isSecretValue(text) || (text.length >= CREDENTIAL_LENGTH_MIN && /[^A-Za-z]/.test(text) && isLiteral(text));
}

/** Whether a value with the name of a secret is one, rather than a placeholder or a description. */
export function isSecretValue(text: string): boolean {
  const value = withoutTemplates(text);
  return isLiteral(value) && (!WORDS.test(value) || entropyOf(value) >= WORDS_ENTROPY_MIN);
}

function isLiteral(text: string): boolean {
  const value = withoutTemplates(text);
  return value.length >= VALUE_LENGTH_MIN && ![/\s/, PLACEHOLDER, REFERENCE].some((other) => other.test(value));
}

/** A text without placeholders that are to be filled in, and without marks of earlier redactions. */
export function withoutTemplates(text: string): string {
  return text.replace(TEMPLATE, '').trim();
}

/** Shannon entropy in bits per character. */
function entropyOf(text: string): number {
  const sample = text.slice(0, SAMPLE_LENGTH_MAX);
  const counts = new Map<string, number>();
  for (const character of sample) counts.set(character, (counts.get(character) ?? 0) + 1);
  return counts.values().reduce((bits, count) => bits - (count / sample.length) * Math.log2(count / sample.length), 0);
}

/** Whether a value is what Basic authentication sends: a name and a password in base64. */
export function decodesToPair(secret: string): boolean {
  const sample = secret.slice(0, SAMPLE_LENGTH_MAX);
  if (!/^[A-Za-z0-9+/]{6,}={0,2}$/.test(sample)) return false;
  const decoded = atob(sample.slice(0, sample.length - (sample.length % 4)));
  return decoded.includes(':') && /^[ -~]+$/.test(decoded);
}
