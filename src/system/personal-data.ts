/**
 * Finds personal data in text and replaces it by the name of its kind, such as `<email>`.
 *
 * Every part of a pattern is bounded, so that matching takes linear time whatever people write.
 */

/** The kinds of personal data that can be found. */
export const PERSONAL_DATA_KINDS = ['email', 'iban', 'card', 'ssn', 'phone', 'address'] as const;
/** One of PERSONAL_DATA_KINDS. */
export type PersonalDataKind = (typeof PERSONAL_DATA_KINDS)[number];

/** What looks like data of a kind, and the check that tells it from other text. */
interface Detector {
  readonly pattern: RegExp;
  readonly isMeant?: (match: string) => boolean;
}

const STREET_EN = 'Street|St|Road|Rd|Avenue|Ave|Lane|Ln|Drive|Dr|Boulevard|Blvd|Court|Ct|Way|Square|Terrace';
const STREET_DE = 'straße|strasse|str\\.|weg|platz|allee|gasse|ring|damm|ufer';
/** A postcode and a town after the street, or a town and a postcode. */
const TOWN = '(?:,? {0,2}(?:[A-Z]{1,2}-)?\\d{4,5} \\p{Lu}[\\p{L}-]{1,40}|, \\p{Lu}[\\p{L} -]{1,40},? [A-Z]{2} \\d{5})?';

const DETECTORS: Readonly<Record<PersonalDataKind, readonly Detector[]>> = {
  email: [{ pattern: /(?<![\w.%+-])[\w.%+'-]{1,64}@(?:[\p{L}\d-]{1,63}\.){1,8}\p{L}{2,24}/gu }],
  iban: [{ pattern: /(?<!\w)[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{2,4}){3,8}(?!\w)/g, isMeant: isIban }],
  card: [{ pattern: /(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])/g, isMeant: isCard }],
  ssn: [{ pattern: /(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])/g }],
  phone: [
    { pattern: /(?<![\w.-])(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}(?![\w-])/g },
    {
      pattern: /(?<![\w+/])(?:\+|00)[1-9]\d{0,2}(?:[ ./-]{0,2}\(?\d{1,5}\)?){2,6}(?<=\d)(?!\w)/g,
      isMeant: hasPhoneLength,
    },
    { pattern: /(?<![\w.-])(?:\(0\d{1,5}\)|0\d{1,5})(?:[ /-]{1,3}\d{2,8}){1,5}(?![\w-])/g, isMeant: hasPhoneLength },
  ],
  address: [
    {
      pattern: new RegExp(
        `(?<!\\w)\\d{1,5}[a-z]? (?:\\p{Lu}[\\p{L}'.]{0,30} ){1,4}(?:${STREET_EN})(?![\\p{L}\\d])\\.?${TOWN}`,
        'gu',
      ),
    },
    {
      pattern: new RegExp(
        `(?<!\\p{L})\\p{Lu}[\\p{L}-]{0,40}?(?: ?\\p{Lu}?\\p{L}{0,20})(?:${STREET_DE}) \\d{1,4} ?[a-z]?(?![\\p{L}\\d])${TOWN}`,
        'gu',
      ),
    },
    { pattern: /(?<!\w)\d{1,4},? (?:rue|avenue|boulevard|place|via|calle) (?:\p{L}[\p{L}'-]{0,30} ?){1,4}/gu },
  ],
};

/** Options of `redactPersonalData`. */
interface PersonalDataOptions {
  /** The kinds to look for; every kind unless it says otherwise. */
  readonly kinds?: readonly PersonalDataKind[];
  /** Text whose personal data may stay, because it was there before. */
  readonly known?: string;
}

/** Passes over a text: a placeholder may end a word that hid what is next to it. */
const PASSES_MAX = 10;

/** Replaces personal data by placeholders. Doing so again changes nothing. */
export function redactPersonalData(text: string, options: PersonalDataOptions = {}): string {
  let result = text;
  for (let passes = 0; passes < PASSES_MAX; passes++) {
    const next = replaceOnce(result, options);
    if (next === result) break;
    result = next;
  }
  return result;
}

function replaceOnce(text: string, { kinds = PERSONAL_DATA_KINDS, known = '' }: PersonalDataOptions): string {
  let result = text;
  for (const kind of PERSONAL_DATA_KINDS.filter((each) => kinds.includes(each))) {
    for (const { pattern, isMeant = () => true } of DETECTORS[kind]) {
      result = result.replace(pattern, (match) => (!isMeant(match) || known.includes(match) ? match : `<${kind}>`));
    }
  }
  return result;
}

function digitsOf(text: string): string {
  return text.replaceAll(/\D/g, '');
}

/** Telephone numbers have seven to fifteen digits. */
function hasPhoneLength(match: string): boolean {
  const { length } = digitsOf(match);
  return length >= 7 && length <= 15;
}

/** The check of Luhn, which every payment card number passes. */
function isCard(match: string): boolean {
  const digits = digitsOf(match);
  let sum = 0;
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits.at(-index - 1));
    const doubled = index % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0 && /[1-9]/.test(digits);
}

/** The remainder by 97 of an account number, with its first four characters at the end and letters as numbers, is 1. */
function isIban(match: string): boolean {
  const plain = match.replaceAll(/[ -]/g, '');
  if (plain.length < 15 || plain.length > 34) return false;
  let remainder = 0;
  for (const character of plain.slice(4) + plain.slice(0, 4)) {
    for (const digit of String(Number.parseInt(character, 36))) remainder = (remainder * 10 + Number(digit)) % 97;
  }
  return remainder === 1;
}
