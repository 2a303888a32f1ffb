import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { testTools } from './mcp-tools.ts';

/** An MCP server on this machine that takes down what it is asked, and can be told to misbehave. */
export class McpHttpServer {
  readonly calls: string[] = [];
  readonly headers: IncomingHttpHeaders[] = [];
  readonly bodies: string[] = [];
  /** Answers in place of the server, if it is there. */
  instead: ((response: ServerResponse) => void) | undefined;
  readonly #server: Server;

  private constructor() {
    const { fetch: answer } = createMcpHandler(() => testTools((name) => this.calls.push(name)), { keepAliveMs: 0 });
    this.#server = createServer(async (request, response) => {
      this.headers.push(request.headers);
      if (this.instead) return this.instead(response);
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      this.bodies.push(Buffer.concat(chunks).toString('utf8'));
      const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]);
      const asked = { method: request.method ?? 'GET', headers, body: Buffer.concat(chunks) };
      const reply = await answer(new Request(this.url, asked));
      response.writeHead(reply.status, Object.fromEntries(reply.headers));
      response.end(Buffer.from(await reply.arrayBuffer()));
    });
  }

  static async open(): Promise<McpHttpServer> {
    const server = new McpHttpServer();
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/mcp`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
