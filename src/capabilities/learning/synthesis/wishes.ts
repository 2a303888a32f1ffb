import { redactText } from '../../../system/redaction.ts';
import { withoutEnd } from '../../../system/text-cuts.ts';

/** What people asked for in their corrections, as an instruction. */
interface Wish {
  readonly text: string;
  /** How many corrections ask for it. */
  readonly support: number;
}

/** What corrections ask for, and how many of them try to command the model or its readers. */
interface Wishes {
  readonly wishes: readonly Wish[];
  readonly suspicious: number;
}

const WISH_CHARS_MAX = 200;
/** Share of common words from which two wishes are the same. */
const SAME_MIN = 0.65;

/**
 * Corrections that speak to the model about its own instructions, or ask it to hand out what it has. Nobody corrects an
 * answer in this way, so they never become a part of a prompt.
 */
const SUSPICIOUS: readonly RegExp[] = [
  /\b(?:ignore|disregard|forget|override|bypass|skip)\b.{0,40}\b(?:instructions?|rules?|prompts?|guidelines?|polic(?:y|ies)|above|restrictions?)\b/i,
  /\b(?:system prompt|developer mode|jailbreak|prompt injection)\b/i,
  /\byou are (?:now|no longer)\b/i,
  /<\s*\/?\s*(?:untrusted|system|assistant|user|instructions?)\b/i,
  /^\s*(?:system|assistant|user)\s*:/i,
  /\b(?:reveal|print|leak|exfiltrate|output|send|post|forward|upload|e-?mail)\b.{0,60}\b(?:secrets?|passwords?|credentials?|tokens?|(?:api )?keys?|all (?:customer|user|data|records?))\b/i,
  /\b(?:send|post|forward|upload|call|fetch)\b.{0,80}\bhttps?:/i,
  /\b(?:do not|don't|never) (?:tell|inform|alert)\b/i,
  /\b(?:approve|apply|grant)\b.{0,40}\b(?:everything|automatically|all proposals|access)\b/i,
];

/** Merges corrections that ask for the same into wishes, the most frequent first, then in the given order. */
export function wishesOf(corrections: readonly string[]): Wishes {
  const plain = corrections.map(plainText).filter((text) => text !== '');
  const kept = plain.filter((text) => !SUSPICIOUS.some((pattern) => pattern.test(text)));
  const groups: { readonly words: ReadonlySet<string>; readonly texts: string[] }[] = [];
  for (const text of kept) {
    const words = wordsOf(text);
    const group = groups.find((each) => isSame(each.words, words));
    if (group) group.texts.push(text);
    else groups.push({ words, texts: [text] });
  }
  const wishes = groups.map(({ texts }) => ({ text: instructionOf(commonest(texts)), support: texts.length }));
  return { wishes: wishes.toSorted((a, b) => b.support - a.support), suspicious: plain.length - kept.length };
}

/** Whether a text says already what a wish asks for. */
export function isSaidIn(text: string, wish: Wish): boolean {
  const words = wordsOf(wish.text);
  return text.split(/\n|(?<=[.!?])\s/).some((line) => isSame(wordsOf(line), words));
}

/** One line without secrets, invisible characters and placeholders. */
function plainText(correction: string): string {
  return redactText(correction)
    .replaceAll(/[\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF]/g, '')
    .replaceAll(/\{\{+|\}\}+/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

const STOP_WORDS = new Set(
  'a an and are as at be for from have in is it its of on or please should that the there this to was we with you your'.split(
    ' ',
  ),
);

/** The words that carry the meaning, without their most common endings. */
function wordsOf(text: string): ReadonlySet<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}']+/gu) ?? [];
  const telling = words.filter((word) => !STOP_WORDS.has(word));
  return new Set(
    (telling.length === 0 ? words : telling).map((word) => word.replace(/(?<=\w{3})(?:ing|ed|es|s)$/, '')),
  );
}

function isSame(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  const common = [...one].filter((word) => other.has(word)).length;
  return common > 0 && common / (one.size + other.size - common) >= SAME_MIN;
}

/** The text that most people wrote, whatever its capitals and its full stop; of several, the first. */
function commonest(texts: readonly string[]): string {
  const counts = Map.groupBy(texts, (text) => withoutEnd(text.toLowerCase(), /[\s.!?]/));
  return [...counts.values()].reduce((best, each) => (each.length > best.length ? each : best))[0]!;
}

/** What people say before what they want. */
const PREAMBLE =
  /^(?:please|pls|kindly|next time,?|in (?:the )?future,?|(?:it|this|you|we|they|the \w+) (?:should|must|needs? to|has to|have to)|should|must|(?:i|we)(?: would|'d)? (?:want|need|prefer|like)(?: (?:it|you|this))?(?: to)?|can you|could you|make sure (?:to|that you))\s+/i;
const TOO = /^(?:it|this|that|the \w+)(?: is| was|'s) (?:far |much |way )?too (\w+)/i;
const LESS: Readonly<Record<string, string>> = { long: 'Be shorter', short: 'Be more detailed', wordy: 'Be brief' };

/** Phrases a wish as an instruction. A long text is the answer that somebody wanted, so it is given as an example. */
function instructionOf(said: string): string {
  if (said.length > WISH_CHARS_MAX) return `Prefer answers like this one: ${said.slice(0, WISH_CHARS_MAX)}…`;
  const [, too] = TOO.exec(said) ?? [];
  if (too !== undefined) return sentence(LESS[too.toLowerCase()] ?? `Avoid answers that are too ${too}`);
  let text = said;
  for (let before = ''; before !== text; ) {
    before = text;
    text = text.replace(PREAMBLE, '');
  }
  return sentence(text.replace(/^not (?:to )?/i, 'do not ').replace(/^(?:don't|dont) /i, 'do not '));
}

function sentence(text: string): string {
  const capital = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(capital) ? capital : `${capital}.`;
}
