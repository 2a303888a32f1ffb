import type { Server, ServerContext } from '@modelcontextprotocol/server';
import type { McpMessage } from '../../../protocol/ai/mcp.ts';
import type { PromptTemplate } from '../../../protocol/ai/prompts.ts';
import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import type { Caller, Reply } from '../../request.ts';
import { type McpToolResult, problemsWith, RUN_STATUS, STATUS_TOOL } from './rules.ts';
import type { McpServerService, Waiting } from './service.ts';

/** A message that has been let in, and what it takes to answer it. */
export interface Exchange {
  readonly caller: Caller;
  readonly message: McpMessage;
  readonly origin: string;
  readonly signal: AbortSignal;
  header(name: string): string | undefined;
}

type Sdk = typeof import('@modelcontextprotocol/server');

/** A key in `_meta` that makes two calls of a tool one, however often they are sent. */
const KEY_IN_META = 'capstan/idempotencyKey';
/** What the one question of a call is called. */
const QUESTION = 'answer';
const RUN_URI = /^openwop:\/\/runs\/([A-Za-z0-9-]{1,128})$/;
/** Of a request's headers, those that the SDK reads. */
const HEADERS = ['accept', 'content-type', 'mcp-method', 'mcp-name', 'mcp-protocol-version'] as const;
const INSTRUCTIONS = `Each tool runs a workflow. A call waits for its run for a while; ask ${STATUS_TOOL} about a run that takes longer or waits for a person.`;

/**
 * Answers one message. Nothing of it stays behind, so any host may answer the next. The SDK is large and loaded by the
 * first message.
 */
export async function serve(service: McpServerService, exchange: Exchange): Promise<Reply> {
  const sdk = await import('@modelcontextprotocol/server');
  const handler = sdk.createMcpHandler(() => serverFor(sdk, service, exchange), { keepAliveMs: 0 });
  const headers = HEADERS.flatMap((name): [string, string][] => {
    const value = exchange.header(name);
    return value === undefined ? [] : [[name, value]];
  });
  const request = new Request(`${exchange.origin}/v1/mcp`, { method: 'POST', headers, signal: exchange.signal });
  return replyOf(await handler.fetch(request, { parsedBody: exchange.message }));
}

async function replyOf(response: Response): Promise<Reply> {
  const { status, body } = response;
  const type = response.headers.get('content-type');
  const headers = type === null ? {} : { 'content-type': type };
  if (body === null) return { status };
  if (!type?.startsWith('text/event-stream')) return { status, headers, text: await response.text() };
  return { status, headers, stream: () => body.pipeThrough(new TextDecoderStream()) };
}

function serverFor(sdk: Sdk, service: McpServerService, exchange: Exchange): Server {
  const server = new sdk.Server(
    { name: 'capstan', version: service.version },
    { capabilities: { tools: {}, resources: {}, prompts: {}, logging: {} }, instructions: INSTRUCTIONS },
  );
  const serving = { sdk, service, exchange };
  serveTools(server, serving);
  serveResources(server, serving);
  servePrompts(server, serving);
  return server;
}

interface Serving {
  readonly sdk: Sdk;
  readonly service: McpServerService;
  readonly exchange: Exchange;
}

function serveTools(server: Server, serving: Serving): void {
  const { sdk, service, exchange } = serving;
  const { caller } = exchange;
  server.setRequestHandler('tools/list', async ({ params }) => {
    const { tools, next } = await outcomeOf(serving, service.tools(caller, placeIn(params?.cursor)));
    const isFirst = params?.cursor === undefined;
    return { tools: [...tools, ...(isFirst ? [RUN_STATUS] : [])], ...cursorTo(next) };
  });
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const { name, arguments: args = {} } = params;
    const waiting = waitingFor(exchange, context);
    if (name === STATUS_TOOL) {
      const problems = problemsWith(RUN_STATUS, args);
      if (problems.length > 0) throw new sdk.ProtocolError(sdk.INVALID_PARAMS, problems.join('; '));
      return { ...(await outcomeOf(serving, service.status(caller, args.runId as string, waiting))) };
    }
    const token = context.mcpReq.requestState<string>();
    if (token !== undefined) {
      const response = context.mcpReq.inputResponses?.[QUESTION];
      const answer = service.answer(caller, { name, token, response }, waiting);
      const { result, isAnswered } = await outcomeOf(serving, answer);
      return isAnswered ? askedOr(serving, context, result) : { ...result };
    }
    const key = context.mcpReq._meta?.[KEY_IN_META] ?? exchange.header('idempotency-key');
    const call = { name, arguments: args, key: key === undefined ? undefined : String(key) };
    return askedOr(serving, context, await outcomeOf(serving, service.call(caller, call, waiting)));
  });
}

/** A run that waits for a person may ask the one before the client, if there is one who may answer. */
async function askedOr({ sdk, service, exchange }: Serving, { mcpReq }: ServerContext, result: McpToolResult) {
  const { waitingFor, runId } = result.structuredContent;
  const { [sdk.CLIENT_CAPABILITIES_META_KEY]: client = {} } = (mcpReq.envelope ?? {}) as { [key: string]: object };
  if (waitingFor === undefined || !('elicitation' in client)) return { ...result };
  const question = await service.question(exchange.caller, runId as string);
  if (!question) return { ...result };
  const { token, message, requestedSchema } = question;
  return sdk.inputRequired({
    inputRequests: { [QUESTION]: sdk.inputRequired.elicit({ message, requestedSchema }) },
    requestState: token,
  });
}

function serveResources(server: Server, serving: Serving): void {
  const { service, exchange } = serving;
  server.setRequestHandler('resources/list', () => ({ resources: [] }));
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [{ uriTemplate: 'openwop://runs/{runId}', name: 'run', mimeType: 'application/json' }],
  }));
  server.setRequestHandler('resources/read', async ({ params: { uri } }) => {
    const [, runId = ''] = RUN_URI.exec(uri) ?? [];
    const snapshot = await outcomeOf(serving, service.snapshot(exchange.caller, runId));
    return { contents: [{ uri, mimeType: 'application/json', text: JSON.stringify(snapshot) }] };
  });
}

function servePrompts(server: Server, serving: Serving): void {
  const { service, exchange } = serving;
  server.setRequestHandler('prompts/list', async ({ params }) => {
    const { templates, next } = await outcomeOf(serving, service.prompts(exchange.caller, placeIn(params?.cursor)));
    return { prompts: templates.map(promptOf), ...cursorTo(next) };
  });
  server.setRequestHandler('prompts/get', async ({ params: { name, arguments: args = {} } }) => {
    const { text } = await outcomeOf(serving, service.prompt(exchange.caller, name, args));
    return { messages: [{ role: 'user', content: { type: 'text', text } }] };
  });
}

/** What is refused, and what goes wrong here, in the words of the protocol. Only the first is the caller's to know. */
async function outcomeOf<T extends object>({ sdk, service }: Serving, work: Promise<T | Refusal>): Promise<T> {
  const outcome = await work.catch((error: unknown) => {
    service.report(error);
    throw new sdk.ProtocolError(sdk.INTERNAL_ERROR, 'Something went wrong on our side. Try again.');
  });
  if (!isRefusal(outcome)) return outcome;
  const { refused, message, details } = outcome;
  throw new sdk.ProtocolError(sdk.INVALID_PARAMS, message, { error: refused, ...details });
}

/** Clients that ask for progress hear of each node that is done. */
function waitingFor({ origin, signal }: Exchange, { mcpReq }: ServerContext): Waiting {
  const progressToken = mcpReq._meta?.progressToken;
  let progress = 0;
  return {
    origin,
    signal: AbortSignal.any([signal, mcpReq.signal]),
    hear: async (nodeId) => {
      if (progressToken === undefined) return;
      progress++;
      const params = { progressToken, progress, message: `${nodeId} is done` };
      await mcpReq.notify({ method: 'notifications/progress', params });
    },
  };
}

function promptOf({ templateId, name, description, variables = [] }: PromptTemplate) {
  return {
    name: templateId,
    ...(name ? { title: name } : {}),
    ...(description ? { description } : {}),
    arguments: variables.map((variable) => ({
      name: variable.name,
      required: variable.required,
      ...(variable.description ? { description: variable.description } : {}),
    })),
  };
}

/** Cursors are opaque to callers: the name where the last page ended. */
function placeIn(cursor: string | undefined): string {
  return cursor === undefined ? '' : Buffer.from(cursor, 'base64url').toString('utf8');
}

function cursorTo(next: string | undefined): { nextCursor?: string } {
  return next === undefined ? {} : { nextCursor: Buffer.from(next, 'utf8').toString('base64url') };
}
