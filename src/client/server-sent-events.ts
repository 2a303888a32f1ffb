/** One parsed message of a server-sent event stream. */
export interface ServerSentEvent {
  readonly id?: string;
  readonly event: string;
  readonly data: string;
}

/** A line that is longer than this is not a valid stream; the limit protects memory. */
const LINE_CHARACTERS_MAX = 64 * 1024 * 1024;

/** Parses server-sent events; chunks may split lines and characters anywhere. */
export async function* parseEvents(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder();
  let rest = '';
  let lines: string[] = [];
  for await (const chunk of bytes) {
    rest += decoder.decode(chunk, { stream: true });
    // A trailing carriage return may be the first half of a CRLF.
    const whole = rest.endsWith('\r') ? rest.slice(0, -1) : rest;
    const parts = whole.split(/\r\n|\r|\n/);
    rest = parts.pop()! + rest.slice(whole.length);
    if (rest.length > LINE_CHARACTERS_MAX) throw new Error('a line of the stream is too long');
    for (const line of parts) {
      if (line !== '') {
        lines.push(line);
        continue;
      }
      const message = messageOf(lines);
      lines = [];
      if (message) yield message;
    }
  }
}

/** Builds a message from its lines; returns undefined for comments, which only keep the connection open. */
function messageOf(lines: readonly string[]): ServerSentEvent | undefined {
  let id: string | undefined;
  let event = 'message';
  const data: string[] = [];
  for (const line of lines) {
    const [, name = line, value = ''] = /^([^:]*): ?(.*)$/s.exec(line) ?? [];
    if (name === 'data') data.push(value);
    else if (name === 'event') event = value;
    else if (name === 'id' && !value.includes('\0')) id = value;
  }
  if (data.length === 0) return undefined;
  return { ...(id === undefined ? {} : { id }), event, data: data.join('\n') };
}
