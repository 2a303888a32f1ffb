import type { Egress } from '../../system/egress.ts';

/** The largest response of a provider. */
const ANSWER_BYTES_MAX = 32 * 1_024 * 1_024;

/** A `fetch` for provider libraries whose requests go through the egress guard. */
export function egressFetch(egress: Egress, timeoutMs: number, maxBytes = ANSWER_BYTES_MAX): typeof fetch {
  return async (input, init = {}) => {
    const { status, headers, body } = await egress.open({
      url: String(input),
      method: init.method ?? 'GET',
      headers: Object.fromEntries(new Headers(init.headers)),
      ...(typeof init.body === 'string' ? { body: init.body } : {}),
      timeoutMs,
      maxBytes,
      signal: init.signal ?? undefined,
      trusted: true,
    });
    const received = new Headers();
    for (const [name, value] of Object.entries(headers)) {
      for (const each of [value ?? []].flat()) received.append(name, each);
    }
    return new Response(ReadableStream.from(body) as ReadableStream<Uint8Array>, { status, headers: received });
  };
}
