import type { Server, ServerContext } from '@modelcontextprotocol/server';
import type { McpMessage } from '../../../protocol/ai/mcp.ts';
import type { PromptTemplate } from '../../../protocol/ai/prompts.ts';
import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { parseTrace } from '../../../protocol/format/trace.ts';
import type { Log } from '../../../system/log.ts';
import type { Caller, Reply } from '../../request.ts';
import { type McpToolResult, RUN_STATUS, STATUS_TOOL } from './rules.ts';
import type { McpServerService } from './service.ts';
import type { Waiting } from './tool-runs.ts';

/** What answers messages. */
export interface McpServer {
  readonly service: McpServerService;
  readonly version: string;
  readonly log: Log;
}

/** A message that passed authorization, with the parts of its request that matter. */
interface Exchange {
  readonly caller: Caller;
  readonly message: McpMessage;
  readonly origin: string;
  readonly signal: AbortSignal;
  header(name: string): string | undefined;
}

type Sdk = typeof import('@modelcontextprotocol/server');

/** The member of `_meta` that holds an idempotency key. */
const KEY_IN_META = 'capstan/idempotencyKey';
/** Name of the one input request that a call makes. */
const QUESTION = 'answer';
const RUN_URI = /^openwop:\/\/runs\/([A-Za-z0-9-]{1,128})$/;
/** The request headers that the SDK reads. */
const HEADERS = ['accept', 'content-type', 'mcp-method', 'mcp-name', 'mcp-protocol-version'] as const;
const INSTRUCTIONS = `Each tool runs a workflow. A call waits for its run for a while; ask ${STATUS_TOOL} about a run that takes longer or waits for a person.`;

/**
 * Answers one message. No state remains, so any host can answer the next message. The SDK is large, so it is loaded
 * with the first message.
 */
export async function exchange(server: McpServer, given: Exchange): Promise<Reply> {
  const sdk = await import('@modelcontextprotocol/server');
  const handler = sdk.createMcpHandler(() => sdkServerFor({ sdk, ...server, exchange: given }), { keepAliveMs: 0 });
  const headers = HEADERS.flatMap((name): [string, string][] => {
    const value = given.header(name);
    return value === undefined ? [] : [[name, value]];
  });
  const request = new Request(`${given.origin}/v1/mcp`, { method: 'POST', headers, signal: given.signal });
  return replyOf(await handler.fetch(request, { parsedBody: given.message }));
}

async function replyOf(response: Response): Promise<Reply> {
  const { status, body } = response;
  const type = response.headers.get('content-type');
  const headers = type === null ? {} : { 'content-type': type };
  if (body === null) return { status };
  if (!type?.startsWith('text/event-stream')) return { status, headers, text: await response.text() };
  return { status, headers, stream: () => body.pipeThrough(new TextDecoderStream()) };
}

interface Serving extends McpServer {
  readonly sdk: Sdk;
  readonly exchange: Exchange;
}

function sdkServerFor(serving: Serving): Server {
  const server = new serving.sdk.Server(
    { name: 'capstan', version: serving.version },
    { capabilities: { tools: {}, resources: {}, prompts: {}, logging: {} }, instructions: INSTRUCTIONS },
  );
  serveTools(server, serving);
  serveResources(server, serving);
  servePrompts(server, serving);
  return server;
}

function serveTools(server: Server, serving: Serving): void {
  const { service, exchange } = serving;
  server.setRequestHandler('tools/list', async ({ params }) => {
    const { tools, next } = await outcomeOf(serving, service.tools(exchange.caller, positionIn(params?.cursor)));
    const isFirst = params?.cursor === undefined;
    return { tools: [...tools, ...(isFirst ? [RUN_STATUS] : [])], ...cursorTo(next) };
  });
  server.setRequestHandler('tools/call', ({ params: { name, arguments: args = {} } }, context) => {
    if (name === STATUS_TOOL) return statusOf(serving, context, args);
    const token = context.mcpReq.requestState<string>();
    return token === undefined ? startRun(serving, context, name, args) : answerQuestion(serving, context, name, token);
  });
}

async function statusOf(serving: Serving, context: ServerContext, args: JsonObject) {
  const { sdk, service, exchange } = serving;
  const problems = await service.problemsWith(RUN_STATUS, args);
  if (problems.length > 0) throw new sdk.ProtocolError(sdk.INVALID_PARAMS, problems.join('; '));
  const waiting = waitingFor(exchange, context);
  return { ...(await outcomeOf(serving, service.status(exchange.caller, args.runId as string, waiting))) };
}

async function answerQuestion(serving: Serving, context: ServerContext, name: string, token: string) {
  const { service, exchange } = serving;
  const given = { name, token, response: context.mcpReq.inputResponses?.[QUESTION] };
  const answered = service.answer(exchange.caller, given, waitingFor(exchange, context));
  const { result, isAnswered } = await outcomeOf(serving, answered);
  return isAnswered ? questionOr(serving, context, result) : { ...result };
}

async function startRun(serving: Serving, context: ServerContext, name: string, args: JsonObject) {
  const { service, exchange } = serving;
  const key = context.mcpReq._meta?.[KEY_IN_META] ?? exchange.header('idempotency-key');
  const { traceparent, tracestate } = context.mcpReq._meta ?? {};
  const trace =
    parseTrace(traceparent, tracestate) ?? parseTrace(exchange.header('traceparent'), exchange.header('tracestate'));
  const call = { name, arguments: args, key: key === undefined ? undefined : String(key), trace };
  const result = service.call(exchange.caller, call, waitingFor(exchange, context));
  return questionOr(serving, context, await outcomeOf(serving, result));
}

/** The question of a run that waits for a person, if the client can ask one and the caller may answer; else the result. */
async function questionOr({ sdk, service, exchange }: Serving, { mcpReq }: ServerContext, result: McpToolResult) {
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
    const { templates, next } = await outcomeOf(serving, service.prompts(exchange.caller, positionIn(params?.cursor)));
    return { prompts: templates.map(promptOf), ...cursorTo(next) };
  });
  server.setRequestHandler('prompts/get', async ({ params: { name, arguments: args = {} } }) => {
    const { text } = await outcomeOf(serving, service.prompt(exchange.caller, name, args));
    return { messages: [{ role: 'user', content: { type: 'text', text } }] };
  });
}

/** Turns refusals and failures into errors of the protocol. The reason for a failure is only logged. */
async function outcomeOf<T extends object>({ sdk, log }: Serving, work: Promise<T | Refusal>): Promise<T> {
  const outcome = await work.catch((error: unknown) => {
    log.error({ err: error }, 'could not answer an MCP message');
    throw new sdk.ProtocolError(sdk.INTERNAL_ERROR, 'The server failed. Try again.');
  });
  if (!isRefusal(outcome)) return outcome;
  const { refused, message, details } = outcome;
  throw new sdk.ProtocolError(sdk.INVALID_PARAMS, message, { error: refused, ...details });
}

/** Clients that asked for progress are notified of each node that completes. */
function waitingFor({ origin, signal }: Exchange, { mcpReq }: ServerContext): Waiting {
  const progressToken = mcpReq._meta?.progressToken;
  let progress = 0;
  return {
    origin,
    signal: AbortSignal.any([signal, mcpReq.signal]),
    onNodeCompleted: async (nodeId) => {
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

/** The position in a cursor: the name where the last page ended. Callers treat cursors as opaque. */
function positionIn(cursor: string | undefined): string {
  return cursor === undefined ? '' : Buffer.from(cursor, 'base64url').toString('utf8');
}

function cursorTo(next: string | undefined): { nextCursor?: string } {
  return next === undefined ? {} : { nextCursor: Buffer.from(next, 'utf8').toString('base64url') };
}
