/** A message of a stream. */
export interface ServerSentEvent {
  readonly id?: string;
  readonly event: string;
  readonly data: string;
}

/** A stream that puts no line end into so many characters is none. */
const UNENDED_MAX = 64 * 1024 * 1024;

/** Takes a stream of server-sent events apart, however its bytes are cut. */
export async function* parseEvents(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder();
  let rest = '';
  let lines: string[] = [];
  for await (const chunk of bytes) {
    rest += decoder.decode(chunk, { stream: true });
    // A carriage return at the end may be the first half of a line end.
    const whole = rest.endsWith('\r') ? rest.slice(0, -1) : rest;
    const parts = whole.split(/\r\n|\r|\n/);
    rest = parts.pop()! + rest.slice(whole.length);
    if (rest.length > UNENDED_MAX) throw new Error('the stream has a line without an end');
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

/** Comments keep the connection open and say nothing. */
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
