/** A member of a JSON object. A member that is an array yields one of these for each item. */
export interface Member {
  readonly name: string;
  readonly value: unknown;
}

/** The size limit of a single value or array item. */
const VALUE_CHARACTERS_MAX = 16 * 1_024 * 1_024;

/**
 * Parses a JSON object as a stream and yields its members; array members item by item. The text may have any length,
 * because only one value is in memory at a time. Throws SyntaxError when the text is not a JSON object.
 */
export async function* jsonMembers(chunks: AsyncIterable<string>): AsyncGenerator<Member> {
  const reader = new MemberReader();
  for await (const chunk of chunks) yield* reader.read(chunk);
  reader.end();
}

/** Splits the text into values; JSON.parse then parses each. */
class MemberReader {
  #state: 'start' | 'object' | 'array' | 'after-array' | 'end' = 'start';
  #text = '';
  #arrayName = '';
  #isEmptySoFar = true;
  #nesting = 0;
  #isInString = false;
  #isEscaped = false;

  *read(chunk: string): Generator<Member> {
    let start = 0;
    for (let index = 0; index < chunk.length; index++) {
      const character = chunk[index]!;
      if (this.#isPartOfValue(character)) continue;
      this.#text += chunk.slice(start, index);
      start = index + 1;
      yield* this.#onDelimiter(character);
    }
    this.#text += chunk.slice(start);
    if (this.#text.length > VALUE_CHARACTERS_MAX) throw new SyntaxError('a value is too long');
  }

  end(): void {
    if (this.#state !== 'end' || this.#text.trim() !== '')
      throw new SyntaxError('the text is not a single JSON object');
  }

  /** Returns true unless the character is a delimiter between the members or items that this class yields. */
  #isPartOfValue(character: string): boolean {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (character === '\\') this.#isEscaped = true;
      else if (character === '"') this.#isInString = false;
      return true;
    }
    switch (character) {
      case '"':
        this.#isInString = true;
        return true;
      case '{':
        return this.#state !== 'start' && ++this.#nesting > 0;
      case '[':
        if (this.#nesting === 0 && this.#state === 'object') return false;
        return ++this.#nesting > 0;
      case '}':
      case ']':
        return this.#nesting > 0 && this.#nesting-- > 0;
      case ',':
        return this.#nesting > 0;
      default:
        return true;
    }
  }

  *#onDelimiter(character: string): Generator<Member> {
    const text = this.#text;
    this.#text = '';
    switch (`${this.#state} ${character}`) {
      case 'start {':
        if (text.trim() !== '') throw new SyntaxError('the text is not a single JSON object');
        this.#state = 'object';
        return;
      case 'object [':
        this.#arrayName = nameOf(text);
        this.#state = 'array';
        this.#isEmptySoFar = true;
        return;
      case 'object ,':
      case 'object }':
        if (character === ',' || !this.#isEmptySoFar || text.trim() !== '') yield memberOf(text);
        break;
      case 'array ,':
      case 'array ]':
        if (character === ',' || !this.#isEmptySoFar || text.trim() !== '') {
          yield { name: this.#arrayName, value: JSON.parse(text) };
        }
        this.#isEmptySoFar = false;
        if (character === ']') this.#state = 'after-array';
        return;
      case 'after-array ,':
      case 'after-array }':
        if (text.trim() !== '') throw new SyntaxError('unexpected text after an array');
        break;
      default:
        throw new SyntaxError(`unexpected ${character}`);
    }
    this.#isEmptySoFar = false;
    this.#state = character === '}' ? 'end' : 'object';
  }
}

function memberOf(text: string): Member {
  const [entry] = Object.entries(JSON.parse(`{${text}}`) as object);
  if (!entry) throw new SyntaxError('a member is missing');
  return { name: entry[0], value: entry[1] };
}

/** The name of a member whose value has not been read yet. */
function nameOf(text: string): string {
  return memberOf(`${text} null`).name;
}
