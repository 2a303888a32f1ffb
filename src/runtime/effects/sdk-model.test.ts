import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { OutputBudget } from '../../engine/limits/output-budget.ts';
import { createEgress } from '../../system/egress.ts';
import { realClock } from '../../system/real.ts';
import type { ModelResult, ProviderQuestion } from './model.ts';
import { type NetworkProvider, sdkProvider } from './sdk-model.ts';

/** Each kind of provider is asked in its own words, over the guarded way out, by a server that speaks them. */

const SECRET = 'the-key-of-the-test';
const QUESTION: ProviderQuestion = {
  model: 'large',
  maxTokens: 64,
  messages: [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Look it up.' },
    { role: 'assistant', content: '', toolCalls: [{ id: 'c0', name: 'search', arguments: { q: 'rain' } }] },
    { role: 'tool', toolCallId: 'c0', name: 'search', content: 'It rains.' },
  ],
  tools: [{ name: 'search', inputSchema: { type: 'object', properties: { q: { type: 'string' } } } }],
};

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

interface Exchange {
  readonly path: string;
  readonly headers: Record<string, unknown>;
  readonly body: Record<string, unknown>;
  readonly result: ModelResult;
}

/** Asks a provider of some kind, which says these events. */
async function ask(
  kind: NetworkProvider['kind'],
  base: string,
  lines: readonly string[],
  budget?: OutputBudget,
): Promise<Exchange> {
  let seen: Omit<Exchange, 'result'> | undefined;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = JSON.parse(Buffer.concat(chunks).toString());
    seen = { path: request.url!, headers: request.headers, body };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(lines.map((line) => `${line}\n\n`).join(''));
  }).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  const settings = {
    provider: 'acme',
    kind,
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}${base}`,
    credentialRef: 'KEY',
    secret: SECRET,
    models: ['large'],
    prices: {},
    timeoutMs: 5_000,
  };
  const provider = sdkProvider(settings, createEgress({ clock: realClock, allowLoopback: false }), realClock);
  const { signal } = new AbortController();
  const result = await provider.answer(QUESTION, {
    signal,
    effectId: 'e',
    tenant: 't',
    nodeId: 'n',
    budget,
    onChunk: () => {},
  });
  return { ...seen!, result };
}

const textOf = ({ chunks }: ModelResult): string => chunks.map(({ text }) => text).join('');
const named = (name: string, data: object): string =>
  `event: ${name}\ndata: ${JSON.stringify({ type: name, ...data })}`;

describe('an anthropic provider', () => {
  const message = { id: 'm', type: 'message', role: 'assistant', model: 'large', content: [], stop_reason: null };
  const begin = named('message_start', { message: { ...message, usage: { input_tokens: 12, output_tokens: 1 } } });
  const text = (words: string): string[] => [
    named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    named('content_block_delta', { index: 0, delta: { type: 'text_delta', text: words } }),
    named('content_block_stop', { index: 0 }),
  ];
  const end = (stop_reason: string): string[] => [
    named('message_delta', { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 7 } }),
    named('message_stop', {}),
  ];

  it('is asked in its own words and understood', async () => {
    const { path, headers, body, result } = await ask('anthropic', '/v1', [
      begin,
      ...text('Rain.'),
      ...end('end_turn'),
    ]);
    expect(path).toBe('/v1/messages');
    expect(headers['x-api-key']).toBe(SECRET);
    expect(body).toMatchObject({ model: 'large', max_tokens: 64, stream: true });
    expect(body.messages).toMatchObject([{ role: 'user' }, { role: 'assistant' }, { role: 'user' }]);
    expect(textOf(result)).toBe('Rain.');
    expect(result.usage).toMatchObject({ provider: 'acme', model: 'large', inputTokens: 12, outputTokens: 7 });
    expect(result.chunks.at(-1)!.meta.finishReason).toBe('stop');
  });

  it('is cut off when its answer is longer than an output may be', async () => {
    const endless = Array.from({ length: 50 }, () => text('Rain. '.repeat(100))).flat();
    const budget = new OutputBudget('The output', 10_000);
    await expect(ask('anthropic', '/v1', [begin, ...endless, ...end('end_turn')], budget)).rejects.toMatchObject({
      error: { code: 'output_limit_exceeded', retryable: false },
    });
  });

  it('says when it refuses, and when it was cut off', async () => {
    const refused = await ask('anthropic', '/v1', [begin, ...text('No.'), ...end('refusal')]);
    expect(refused.result.refusal).toEqual({ text: 'No.' });
    const cut = await ask('anthropic', '/v1', [begin, ...text('It r'), ...end('max_tokens')]);
    expect(cut.result).toMatchObject({ stopReason: 'max_tokens' });
    expect(cut.result.chunks.at(-1)!.meta.finishReason).toBe('length');
  });
});

describe('a google provider', () => {
  const said = (parts: object[], finishReason?: string): string =>
    `data: ${JSON.stringify({
      candidates: [{ content: { role: 'model', parts }, index: 0, ...(finishReason ? { finishReason } : {}) }],
      usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 7, totalTokenCount: 19 },
    })}`;

  it('is asked in its own words and understood', async () => {
    const { path, headers, body, result } = await ask('google', '/v1beta', [
      said([{ text: 'Let me ' }]),
      said([{ functionCall: { name: 'search', args: { q: 'rain' } } }], 'STOP'),
    ]);
    expect(path).toContain('/v1beta/models/large:streamGenerateContent');
    expect(headers['x-goog-api-key']).toBe(SECRET);
    expect(body).toMatchObject({ generationConfig: { maxOutputTokens: 64 } });
    expect(textOf(result)).toBe('Let me ');
    expect(result.chunks.at(-1)!.meta).toMatchObject({
      finishReason: 'tool_calls',
      toolCalls: [{ name: 'search', arguments: { q: 'rain' } }],
    });
    expect(result.usage).toMatchObject({ inputTokens: 12, outputTokens: 7 });
  });

  it('says when it refuses', async () => {
    const { result } = await ask('google', '/v1beta', [said([{ text: 'I ' }], 'SAFETY')]);
    expect(result.refusal).toEqual({ text: 'I ' });
  });
});
