import type { CallToolResult, Client, Tool, Transport } from '@modelcontextprotocol/client';
import type { JsonObject } from '../../protocol/format/json.ts';
import type { TraceHeaders } from '../../protocol/format/trace.ts';
import { type Clock, sleep } from '../../system/clock.ts';
import { type Egress, EgressFailure } from '../../system/egress.ts';
import { redactValue, secretRedactor } from '../../system/redaction.ts';
import { BoundedCache } from '../bounded-cache.ts';
import { NodeFailure } from '../node-failure.ts';
import { ToolFailure } from '../tools.ts';
import { egressFetch } from './egress-fetch.ts';
import { LeaseLost } from './ledger.ts';
import type { McpServerAddress } from './mcp-server-address.ts';

/** What a connection needs of the host. */
interface McpConnectionParts {
  readonly clock: Clock;
  readonly egress: Egress;
  readonly version: string;
}

/** A tool call. */
interface McpCall {
  /** On whose behalf: failures of one tenant's calls are no reason to keep others from the server. */
  readonly tenant: string;
  readonly name: string;
  readonly arguments: JsonObject;
  /** The idempotency key, for servers that know the member. */
  readonly key: string;
  /** The run's trace, which MCP carries in `_meta`. */
  readonly trace?: TraceHeaders | undefined;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

const ANSWER_BYTES_MAX = 4 * 1_024 * 1_024;
/** The longest that any call may take. */
const EXCHANGE_MS = 300_000;
const TEXT_CHARACTERS_MAX = 90_000;
const MESSAGE_CHARACTERS_MAX = 300;
const PAGES_MAX = 10;
const TOOLS_MAX = 500;
/** How long a list of tools is cached. */
const LIST_MS = 60_000;
/** Tenants whose failures are remembered. */
const BREAKERS_MAX = 1_000;
/** The connection is opened anew after this many calls of a tenant in a row that timed out. */
const TIMEOUTS_MAX = 3;
const PAUSE_MS = 500;
const PAUSE_MAX_MS = 60_000;

/** The failures of one tenant's calls: after some, its next ones wait, and nobody else's. */
interface Breaker {
  failures: number;
  closedUntil: number;
}

/** The list of tools is asked for on behalf of all tenants. */
const ALL_TENANTS = '*';

/**
 * The connection to one server, which all tenants share. It is opened with the first call and again after a failure, with
 * exponential backoff for the tenant whose call failed.
 * Answers are untrusted: they are limited in size, redacted and passed on as data.
 */
export class McpConnection {
  readonly #address: McpServerAddress;
  readonly #parts: McpConnectionParts;
  readonly #redact: (text: string) => string;
  #client: Promise<Client> | undefined;
  #list: { readonly tools: Promise<readonly Tool[]>; readonly until: number } | undefined;
  readonly #breakers = new BoundedCache<string, Breaker>(BREAKERS_MAX);
  #callsInFlight = 0;
  #isStopped = false;

  constructor(address: McpServerAddress, parts: McpConnectionParts) {
    this.#address = address;
    this.#parts = parts;
    this.#redact = secretRedactor(address.secrets);
  }

  /** The tools of the server, as it describes them. With a signal, it waits until a failed server may be asked again. */
  async tools(signal?: AbortSignal): Promise<readonly Tool[]> {
    if (signal) await this.#rest(ALL_TENANTS, signal);
    const now = this.#parts.clock.now();
    if (this.#list && this.#list.until > now) return this.#list.tools;
    const { timeoutMs } = this.#address;
    const tools = this.#use({ tenant: ALL_TENANTS, timeoutMs }, async (client) => {
      const listed = await client.listTools(undefined, { timeout: timeoutMs });
      return listed.tools.slice(0, TOOLS_MAX);
    });
    this.#list = { tools, until: now + LIST_MS };
    tools.catch(() => {
      this.#list = undefined;
    });
    return tools;
  }

  /**
   * Calls a tool. Throws ToolFailure if the server answers with an error, and a retryable NodeFailure if it does not
   * answer: whether the tool did anything is unknown then, and the next attempt has the same key.
   */
  async call({ tenant, name, arguments: args, key, trace, timeoutMs, signal }: McpCall): Promise<unknown> {
    const params = { name, arguments: args, _meta: { ...trace, 'capstan/idempotencyKey': key } };
    // With a definition of ours, the SDK does not validate the answer against a schema of the server.
    const toolDefinition = { name, inputSchema: { type: 'object' as const } };
    await this.#rest(tenant, signal);
    const answer = await this.#use({ tenant, timeoutMs, signal }, (client) =>
      client.callTool(params, { timeout: timeoutMs, signal, toolDefinition }),
    );
    const value = contentOf(answer);
    if (answer.isError) throw new ToolFailure(this.#shown(typeof value === 'string' ? value : JSON.stringify(value)));
    return typeof value === 'string' ? this.#redact(value) : redactValue(value, this.#redact);
  }

  /** Closes the connection for good. Calls in progress fail with LeaseLost, so that the next host repeats them. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#close();
  }

  async #close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    this.#list = undefined;
    await (await client?.catch(() => undefined))?.close();
  }

  async #use<T>({ tenant, timeoutMs, signal }: Use, ask: (client: Client) => Promise<T>): Promise<T> {
    this.#callsInFlight++;
    try {
      const result = await ask(await this.#open(tenant));
      this.#breakers.delete(tenant);
      return result;
    } catch (error) {
      if (this.#isStopped) throw new LeaseLost('this host is stopping');
      if (error instanceof NodeFailure) throw error;
      const said = this.#shown((error as Error).message);
      if (signal?.aborted) throw this.#unavailable(`was not waited for: ${said}`);
      const kind = await kindOf(error);
      if (kind === 'answer') throw new ToolFailure(`The server ${this.#address.name} refused the call: ${said}`);
      // A caller with less patience than the operator's says nothing about the server.
      const isImpatient = kind === 'timeout' && timeoutMs < this.#address.timeoutMs;
      if (!isImpatient) await this.#failed(tenant, kind === 'timeout' && this.#isKeptAfterTimeout(tenant));
      if (kind === 'refused') throw this.#refused(said);
      throw this.#unavailable(`gave no answer: ${said}`);
    } finally {
      this.#callsInFlight--;
    }
  }

  /** Others may be waiting for an answer that comes; the last one whose call times out closes the connection. */
  #isKeptAfterTimeout(tenant: string): boolean {
    return this.#breakerOf(tenant).failures < TIMEOUTS_MAX || this.#callsInFlight > 1;
  }

  #breakerOf(tenant: string): Breaker {
    return this.#breakers.get(tenant) ?? { failures: 0, closedUntil: 0 };
  }

  #unavailable(what: string): NodeFailure {
    const { name } = this.#address;
    const message = `The server ${name} ${what}`;
    return new NodeFailure({ code: 'upstream_unavailable', message, details: { service: name }, retryable: true });
  }

  /** Only the operator can mend this: another attempt with the same token would be refused as well. */
  #refused(said: string): NodeFailure {
    const { name } = this.#address;
    const message = `The server ${name} does not accept the credential of this host: ${said}`;
    return new NodeFailure({ code: 'upstream_refused', message, details: { service: name }, retryable: false });
  }

  /** Waits for the end of the tenant's pause after a failure, unless that takes longer than a call may. */
  async #rest(tenant: string, signal: AbortSignal): Promise<void> {
    const waitMs = this.#breakerOf(tenant).closedUntil - this.#parts.clock.now();
    if (waitMs <= 0 || waitMs > this.#address.timeoutMs) return;
    await sleep(this.#parts.clock, waitMs, signal);
  }

  #open(tenant: string): Promise<Client> {
    if (this.#isStopped) throw new Error('this host is stopping');
    const waitMs = this.#breakerOf(tenant).closedUntil - this.#parts.clock.now();
    if (waitMs > 0) {
      const seconds = Math.ceil(waitMs / 1_000);
      throw this.#unavailable(`is not there. Try again in ${seconds} s.`);
    }
    this.#client ??= this.#connect();
    return this.#client;
  }

  async #connect(): Promise<Client> {
    const sdk = await import('@modelcontextprotocol/client');
    const { version } = this.#parts;
    const client = new sdk.Client(
      { name: 'capstan', version },
      { versionNegotiation: { mode: 'auto' }, listMaxPages: PAGES_MAX },
    );
    const transport = await this.#transport(sdk);
    await client.connect(transport, { timeout: this.#address.timeoutMs }).catch(async (error) => {
      await transport.close();
      throw error;
    });
    client.onclose = () => void this.#onClose(client);
    return client;
  }

  async #transport({
    StreamableHTTPClientTransport,
  }: typeof import('@modelcontextprotocol/client')): Promise<Transport> {
    const { url, command = '', args, env, token } = this.#address;
    if (url === undefined) {
      const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
      return new StdioClientTransport({ command, args: [...args], env: { ...env }, stderr: 'ignore' });
    }
    const send = egressFetch(this.#parts.egress, EXCHANGE_MS, ANSWER_BYTES_MAX);
    return new StreamableHTTPClientTransport(new URL(url), {
      // The stream of server messages is not used.
      fetch: async (input, init) => (init?.method === 'GET' ? new Response(null, { status: 405 }) : send(input, init)),
      ...(token === undefined ? {} : { requestInit: { headers: { authorization: `Bearer ${token}` } } }),
    });
  }

  /** The server closed the connection; calls in progress fail by themselves. */
  async #onClose(closed: Client): Promise<void> {
    if ((await this.#client?.catch(() => undefined)) === closed) await this.#close().catch(() => {});
  }

  /** Counts a failure of a tenant. Unless the connection is kept, its next call opens another one after a pause. */
  async #failed(tenant: string, isKept: boolean): Promise<void> {
    const failures = this.#breakerOf(tenant).failures + 1;
    const pauseMs = isKept ? 0 : Math.min(PAUSE_MS * 2 ** (failures - 1), PAUSE_MAX_MS);
    this.#breakers.set(tenant, { failures, closedUntil: this.#parts.clock.now() + pauseMs });
    if (!isKept) await this.#close().catch(() => {});
  }

  #shown(text: string): string {
    return this.#redact(text).slice(0, MESSAGE_CHARACTERS_MAX);
  }
}

/** On whose behalf the connection is used, and for how long. */
interface Use {
  readonly tenant: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

const HTTP_REFUSALS: readonly unknown[] = [401, 403];

/** What a failure says about the server: it answered, refused the credential, timed out, or the connection is gone. */
async function kindOf(error: unknown): Promise<'answer' | 'refused' | 'timeout' | 'closed'> {
  const { ProtocolError, SdkError, SdkErrorCode, SdkHttpError, UnauthorizedError } = await import(
    '@modelcontextprotocol/client'
  );
  if (error instanceof UnauthorizedError) return 'refused';
  if (error instanceof SdkHttpError && HTTP_REFUSALS.includes(error.status)) return 'refused';
  if (error instanceof ProtocolError) return 'answer';
  if (error instanceof EgressFailure && error.reason === 'too_large') return 'answer';
  if (!(error instanceof SdkError)) return 'closed';
  const answers: readonly string[] = [
    SdkErrorCode.InvalidResult,
    SdkErrorCode.UnsupportedResultType,
    SdkErrorCode.ListPaginationExceeded,
    SdkErrorCode.CapabilityNotSupported,
  ];
  if (answers.includes(error.code)) return 'answer';
  return error.code === SdkErrorCode.RequestTimeout ? 'timeout' : 'closed';
}

/** The structured value of an answer, or its text. Other content is replaced by its type. */
function contentOf({ structuredContent, content }: CallToolResult): unknown {
  const text = content.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join('\n');
  const value = structuredContent ?? text;
  const length = typeof value === 'string' ? value.length : JSON.stringify(value).length;
  if (length <= TEXT_CHARACTERS_MAX) return value;
  throw new ToolFailure(`The answer has more than ${TEXT_CHARACTERS_MAX} characters.`);
}
