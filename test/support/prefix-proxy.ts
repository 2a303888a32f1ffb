import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A proxy that publishes a host below a path, as operators do who have one name for several services. */
export interface PrefixProxy {
  readonly url: string;
  close(): Promise<void>;
}

/** Takes the path away from each request and passes the rest on; the host never hears of it. */
export async function prefixProxy(target: string, prefix: string): Promise<PrefixProxy> {
  const server = createServer((incoming, answer) => {
    const { url = '/', method, headers } = incoming;
    if (!url.startsWith(`${prefix}/`)) return void answer.writeHead(404).end();
    const outgoing = send(target + url.slice(prefix.length), { method, headers }, (reply) => {
      answer.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(answer);
    });
    outgoing.on('error', () => answer.destroy());
    answer.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
