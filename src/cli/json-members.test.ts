import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonMembers, type Member } from './json-members.ts';

describe('jsonMembers', () => {
  it('yields what JSON.parse finds, however the text is chunked and spaced', async () => {
    const objects = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue({ maxDepth: 3 }));
    const spaces = fc.constantFrom(undefined, 1, '\t\r');
    await fc.assert(
      fc.asyncProperty(objects, spaces, fc.integer({ min: 1, max: 7 }), async (object, space, size) => {
        const text = JSON.stringify(object, null, space);
        expect(await membersOf(text, size)).toEqual(expected(JSON.parse(text)));
      }),
    );
  });

  it('yields members before the text is complete', async () => {
    const members = jsonMembers(pieces(['{"a": 1, "list": [{"x": "]"},', ' 2], "b": null}']));
    expect((await members.next()).value).toEqual({ name: 'a', value: 1 });
    expect((await members.next()).value).toEqual({ name: 'list', value: { x: ']' } });
  });

  it.each([
    '',
    ' ',
    '[]',
    '1',
    '"{}"',
    '{',
    '{"a"}',
    '{"a":}',
    '{"a":1',
    '{"a":1,}',
    '{,"a":1}',
    '{"a":1 "b":2}',
    '{"a":[1,]}',
    '{"a":[,1]}',
    '{"a":[1}',
    '{"a":[1] 2}',
    '{"a":[1]]}',
    '{"a":1}}',
    '{"a":1} x',
    'x {"a":1}',
    '{[1]}',
    '{"a":x}',
  ])('are not found in %s', async (text) => {
    await expect(membersOf(text, 3)).rejects.toThrow(SyntaxError);
  });

  it('limits the size of a value', async () => {
    const mebibyte = 'x'.repeat(1_024 * 1_024);
    async function* endless() {
      yield '{"a":"';
      for (;;) yield mebibyte;
    }
    await expect(all(endless())).rejects.toThrow('too long');
  });
});

function membersOf(text: string, size: number): Promise<Member[]> {
  const parts = Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
    text.slice(index * size, (index + 1) * size),
  );
  return all(pieces(parts));
}

async function all(chunks: AsyncIterable<string>): Promise<Member[]> {
  const members: Member[] = [];
  for await (const member of jsonMembers(chunks)) members.push(member);
  return members;
}

async function* pieces(parts: readonly string[]): AsyncGenerator<string> {
  yield* parts;
}

function expected(object: object): Member[] {
  return Object.entries(object).flatMap(([name, value]) =>
    Array.isArray(value) ? value.map((item) => ({ name, value: item })) : [{ name, value }],
  );
}
