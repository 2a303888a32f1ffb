import { isObject } from '../../src/protocol/format/json.ts';

/** A part of an output that can be corrected, as text. */
export interface CorrectablePart {
  readonly name: string;
  /** What it is now; empty for words about it. */
  readonly text: string;
  readonly isJson: boolean;
}

/** A correction as it is sent, or what is wrong with it. */
type ReadCorrection = { readonly correction: string } | { readonly problem: string };

/** For what is easier said than shown. */
const IN_WORDS: CorrectablePart = { name: 'in words', text: '', isJson: false };

/**
 * What of an output can be corrected: its texts, the longest first, because that is what people read; then all of it
 * as JSON; and words about it.
 */
export function partsOf(output: unknown): readonly CorrectablePart[] {
  const value = unwrapped(output);
  if (value === undefined || (isObject(value) && Object.keys(value).length === 0)) return [IN_WORDS];
  if (typeof value === 'string') return [{ name: 'the text', text: value, isJson: false }, IN_WORDS];
  const texts = Object.entries(isObject(value) ? value : {})
    .filter((entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1] !== '')
    .map(([name, text]) => ({ name, text, isJson: false }))
    .toSorted((one, other) => other.text.length - one.text.length);
  return [...texts, { name: 'everything', text: JSON.stringify(value, null, 2), isJson: true }, IN_WORDS];
}

/** The outputs of a run stand under the names of its last nodes; a single one is meant without it. */
function unwrapped(output: unknown): unknown {
  if (!isObject(output)) return output;
  const [only, ...others] = Object.values(output);
  return others.length === 0 && isObject(only) ? only : output;
}

/** Reads what somebody made of a part. */
export function readCorrection({ text, isJson }: CorrectablePart, edited: string): ReadCorrection {
  if (edited.trim() === '') return { problem: 'Fill this in.' };
  if (edited === text) return { problem: 'Nothing is changed yet.' };
  if (!isJson) return { correction: edited };
  try {
    return { correction: JSON.stringify(JSON.parse(edited)) };
  } catch (error) {
    return { problem: `This is not JSON: ${error instanceof Error ? error.message : ''}` };
  }
}
