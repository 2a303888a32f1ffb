import { type Listener, recorder } from './recorder.ts';

let isObserved = false;

/** Has the recorder listen to every answer that `fetch` of this process gets from a host under test. */
export function observeFetch(): void {
  if (isObserved) return;
  isObserved = true;
  const plain = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    const response = await plain(input, init);
    const method = init?.method ?? (input instanceof Request ? input.method : 'GET');
    const type = response.headers.get('content-type') ?? '';
    const listener = recorder.listen(method, response.url, { status: response.status, type });
    return listener ? overheard(response, listener) : response;
  };
}

/** The same answer. Whoever reads it has the listener hear it; nothing is read ahead, and a reader who leaves is gone. */
function overheard(response: Response, listener: Listener): Response {
  const { body } = response;
  if (body === null) {
    listener.end();
    return response;
  }
  const text = response.text.bind(response);
  let heard: ReadableStream<Uint8Array<ArrayBuffer>> | undefined;
  return Object.defineProperties(response, {
    body: {
      get: () => {
        heard ??= body.pipeThrough(eavesdropper(listener));
        return heard;
      },
    },
    text: {
      value: async () => {
        if (heard) return new Response(heard).text();
        const whole = await text();
        listener.chunk(whole);
        listener.end();
        return whole;
      },
    },
    json: { value: async () => JSON.parse(await response.text()) },
  });
}

function eavesdropper(listener: Listener): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  const decoder = new TextDecoder();
  return new TransformStream({
    transform: (chunk, controller) => {
      listener.chunk(decoder.decode(chunk, { stream: true }));
      controller.enqueue(chunk);
    },
    flush: () => listener.end(),
  });
}
