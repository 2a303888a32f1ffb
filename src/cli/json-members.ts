/** A member of a JSON object; of a list that is a member, one item. */
export interface Member {
  readonly name: string;
  readonly value: unknown;
}

/** One value, or one item of a list, may be this long. */
const VALUE_CHARACTERS_MAX = 16 * 1_024 * 1_024;

/**
 * The members of the object that a JSON text holds, as the text comes in; the items of its lists one by one. The text may
 * be of any length and is never held as a whole. Throws SyntaxError when it is not JSON, or not an object.
 */
export async function* jsonMembers(chunks: AsyncIterable<string>): AsyncGenerator<Member> {
  const reader = new MemberReader();
  for await (const chunk of chunks) yield* reader.read(chunk);
  reader.end();
}

/** Finds where values end; what they are, JSON.parse says. */
class MemberReader {
  /** Before the object, among its members, in the list that is one of them, right behind that list, behind it all. */
  #place: 'before' | 'object' | 'list' | 'after-list' | 'behind' = 'before';
  #text = '';
  #listName = '';
  #isEmptySoFar = true;
  #nesting = 0;
  #isInString = false;
  #isEscaped = false;

  *read(chunk: string): Generator<Member> {
    let start = 0;
    for (let index = 0; index < chunk.length; index++) {
      const character = chunk[index]!;
      if (this.#isInside(character)) continue;
      this.#text += chunk.slice(start, index);
      start = index + 1;
      yield* this.#meet(character);
    }
    this.#text += chunk.slice(start);
    if (this.#text.length > VALUE_CHARACTERS_MAX) throw new SyntaxError('a value is too long');
  }

  end(): void {
    if (this.#place !== 'behind' || this.#text.trim() !== '') throw new SyntaxError('the text is not one JSON object');
  }

  /** Whether this is part of a value: anything but a bracket or a comma between values. */
  #isInside(character: string): boolean {
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
        return this.#place !== 'before' && ++this.#nesting > 0;
      case '[':
        if (this.#nesting === 0 && this.#place === 'object') return false;
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

  *#meet(character: string): Generator<Member> {
    const text = this.#text;
    this.#text = '';
    switch (`${this.#place} ${character}`) {
      case 'before {':
        if (text.trim() !== '') throw new SyntaxError('the text is not one JSON object');
        this.#place = 'object';
        return;
      case 'object [':
        this.#listName = nameOf(text);
        this.#place = 'list';
        this.#isEmptySoFar = true;
        return;
      case 'object ,':
      case 'object }':
        if (character === ',' || !this.#isEmptySoFar || text.trim() !== '') yield memberOf(text);
        break;
      case 'list ,':
      case 'list ]':
        if (character === ',' || !this.#isEmptySoFar || text.trim() !== '') {
          yield { name: this.#listName, value: JSON.parse(text) };
        }
        this.#isEmptySoFar = false;
        if (character === ']') this.#place = 'after-list';
        return;
      case 'after-list ,':
      case 'after-list }':
        if (text.trim() !== '') throw new SyntaxError('something stands behind a list');
        break;
      default:
        throw new SyntaxError(`${character} is out of place`);
    }
    this.#isEmptySoFar = false;
    this.#place = character === '}' ? 'behind' : 'object';
  }
}

function memberOf(text: string): Member {
  const [entry] = Object.entries(JSON.parse(`{${text}}`) as object);
  if (!entry) throw new SyntaxError('a member is missing');
  return { name: entry[0], value: entry[1] };
}

/** Of a member whose value is yet to come. */
function nameOf(text: string): string {
  return memberOf(`${text} null`).name;
}
