import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseEvents, type ServerSentEvent } from './server-sent-events.ts';

async function parsed(chunks: readonly Uint8Array[]): Promise<ServerSentEvent[]> {
  const messages: ServerSentEvent[] = [];
  for await (const message of parseEvents(chunksOf(chunks))) messages.push(message);
  return messages;
}

async function* chunksOf(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('server-sent events', () => {
  it('are parsed with any line ending and any chunking', async () => {
    const line = fc.string({ unit: 'grapheme' }).filter((text) => !/[\r\n\0]/.test(text));
    const message = fc.record({ id: line, event: line, data: fc.array(line, { minLength: 1, maxLength: 3 }) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(message, { maxLength: 5 }),
        fc.constantFrom('\n', '\r\n', '\r'),
        fc.infiniteStream(fc.integer({ min: 1, max: 7 })),
        async (messages, end, sizes) => {
          const text = messages
            .map(({ id, event, data }) =>
              [`id: ${id}`, ': a comment', `event: ${event}`, ...data.map((part) => `data: ${part}`), '', ''].join(end),
            )
            .join('');
          const all = bytes(text);
          const chunks: Uint8Array[] = [];
          for (let at = 0; at < all.length; ) {
            const { value: size } = sizes.next() as { value: number };
            chunks.push(all.slice(at, at + size));
            at += size;
          }
          // A message that ends in a lone carriage return is complete only once the next byte is there.
          const wanted = messages.map(({ id, event, data }) => ({ id, event, data: data.join('\n') }));
          expect(await parsed([...chunks, bytes(': end\n\n')])).toEqual(wanted);
        },
      ),
    );
  });

  it('are ignored without data, and dropped when incomplete', async () => {
    expect(await parsed([bytes(':keepalive\n\nid: 1\n\ndata: a\n\ndata: lost\n')])).toEqual([
      { event: 'message', data: 'a' },
    ]);
  });
});
