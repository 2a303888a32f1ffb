import { Ajv2020 } from 'ajv/dist/2020.js';
import { Type } from 'typebox';
import { describe, expect, it } from 'vitest';
import { Closed, OneOf } from '../format/schema.ts';
import { EVENTS } from '../running/events.ts';
import { CreateRunReply, CreateRunRequest, PollReply, RunParams, RunSnapshot } from '../running/runs.ts';
import { WorkflowDefinition } from '../running/workflows.ts';
import { asyncapiDocument } from './asyncapi.ts';
import { openapiDocument } from './openapi.ts';
import type { RouteContract } from './routes.ts';

type Json = Record<string, never>;

const ROUTES: readonly RouteContract[] = [
  {
    operationId: 'createRun',
    summary: 'Starts a run',
    method: 'POST',
    path: '/v1/runs',
    scope: 'runs:create',
    body: CreateRunRequest,
    replies: { 201: CreateRunReply },
    refusals: [400, 409, 422],
  },
  {
    operationId: 'listRuns',
    summary: 'Lists runs',
    method: 'GET',
    path: '/v1/runs',
    scope: 'runs:read',
    query: Closed({ limit: Type.Optional(Type.Integer()), status: OneOf(['running', 'failed']) }),
    replies: {
      200: Type.Object({ items: Type.Array(RunSnapshot), nested: Type.Object({ workflow: WorkflowDefinition }) }),
    },
  },
  {
    operationId: 'forkRun',
    summary: 'Forks a run',
    method: 'POST',
    path: '/v1/runs/{runId}:fork',
    scope: 'runs:create',
    params: RunParams,
    body: Closed({ from: Type.Integer() }),
    bodyOptional: true,
    replies: { 201: CreateRunReply, 204: 'nothing' },
  },
  {
    operationId: 'followRun',
    summary: 'Follows a run',
    method: 'GET',
    path: '/v1/runs/{runId}/events',
    scope: 'runs:read',
    params: RunParams,
    replies: { 200: ['text/event-stream', PollReply] },
  },
  {
    operationId: 'poll',
    summary: 'Polls',
    method: 'GET',
    path: '/v1/poll',
    scope: 'runs:read',
    replies: { 200: PollReply },
  },
  {
    operationId: 'open',
    summary: 'Is open',
    method: 'GET',
    path: '/open',
    scope: 'public',
    replies: { 200: RunSnapshot },
  },
];

describe('the OpenAPI document', () => {
  const document = JSON.parse(JSON.stringify(openapiDocument(ROUTES, { title: 'Test', version: '9.9.9' }))) as Json;

  it('is valid and has the version of the protocol', () => {
    expect(document).toMatchObject({
      openapi: '3.1.0',
      info: { title: 'Test', version: '9.9.9' },
      servers: [{ url: '/' }],
    });
  });

  it('has no dangling references', () => {
    const references = findAll(document, '$ref') as string[];
    expect(references.length).toBeGreaterThan(5);
    for (const reference of references) expect(resolve(document, reference), reference).toBeDefined();
  });

  it('contains no $id, only references', () => {
    expect(findAll(document, '$id')).toEqual([]);
  });

  it('lists each named schema once', () => {
    expect(Object.keys(at(document, 'components', 'schemas')).toSorted()).toEqual(
      [
        'CreateRunReply',
        'CreateRunRequest',
        'ErrorEnvelope',
        'IssuedWebhook',
        'PollReply',
        'RunEvent',
        'RunSnapshot',
        'WorkflowDefinition',
      ].toSorted(),
    );
  });

  it('has schemas that compile, including references', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema(document, 'document');
    for (const name of Object.keys(at(document, 'components', 'schemas'))) {
      expect(() => ajv.compile({ $ref: `document#/components/schemas/${name}` }), name).not.toThrow();
    }
    const check = ajv.compile({ $ref: 'document#/components/schemas/CreateRunReply' });
    expect(check({ runId: 'run-1', status: 'pending', eventsUrl: 'http://x/y' })).toBe(true);
    expect(check({ runId: 'run-1', status: 'strange', eventsUrl: 'http://x/y' })).toBe(false);
  });

  it('groups the methods of one path', () => {
    expect(Object.keys(at(document, 'paths', '/v1/runs'))).toEqual(['post', 'get']);
  });

  it('lists parameters, and which are required', () => {
    expect(at(document, 'paths', '/v1/runs', 'get', 'parameters')).toMatchObject([
      { name: 'limit', in: 'query', required: false },
      { name: 'status', in: 'query', required: true },
    ]);
    expect(at(document, 'paths', '/v1/runs/{runId}:fork', 'post', 'parameters')).toMatchObject([
      { name: 'runId', in: 'path', required: true },
      { name: 'Idempotency-Key', in: 'header', required: false },
    ]);
  });

  it('says whether a body is required', () => {
    expect(at(document, 'paths', '/v1/runs', 'post', 'requestBody')).toMatchObject({ required: true });
    expect(at(document, 'paths', '/v1/runs/{runId}:fork', 'post', 'requestBody')).toMatchObject({ required: false });
  });

  it('describes responses: JSON, a stream, either of them, or no body', () => {
    expect(at(document, 'paths', '/v1/runs/{runId}/events', 'get', 'responses', '200')).toMatchObject({
      content: {
        'text/event-stream': { schema: { type: 'string' } },
        'application/json': { schema: { $ref: '#/components/schemas/PollReply' } },
      },
    });
    expect(at(document, 'paths', '/v1/runs/{runId}:fork', 'post', 'responses', '204')).toEqual({
      description: 'No content',
    });
  });

  it('shows the error envelope for every refusal, including those of all operations', () => {
    const responses = at(document, 'paths', '/v1/runs', 'post', 'responses') as Record<string, unknown>;
    expect(Object.keys(responses)).toEqual(['201', '400', '401', '403', '409', '413', '415', '422', '429', '503']);
    expect(responses['409']).toMatchObject({
      content: { 'application/json': { schema: { $ref: '#/components/schemas/ErrorEnvelope' } } },
    });
  });

  it('shows the refusals that the edge gives to an operation of its kind', () => {
    const refusals = (path: string, method: string): string[] =>
      Object.keys(at(document, 'paths', path, method, 'responses')).filter((status) => status >= '400');
    expect(refusals('/v1/poll', 'get')).toEqual(['400', '401', '403', '429', '503']);
    expect(refusals('/v1/runs/{runId}/events', 'get')).toEqual(['400', '401', '403', '410', '429', '503']);
    expect(refusals('/v1/runs/{runId}:fork', 'post')).toEqual([
      '400',
      '401',
      '403',
      '409',
      '410',
      '413',
      '415',
      '429',
      '503',
    ]);
  });

  it('requires no credential for public operations', () => {
    expect(at(document, 'paths', '/open', 'get')).toMatchObject({ security: [] });
    expect(Object.keys(at(document, 'paths', '/open', 'get', 'responses'))).toEqual(['200', '400', '503']);
    expect(at(document, 'paths', '/v1/runs', 'get')).toMatchObject({ 'x-scope': 'runs:read' });
  });
});

describe('the AsyncAPI document', () => {
  const document = JSON.parse(JSON.stringify(asyncapiDocument({ title: 'Test', version: '9.9.9' }))) as Json;

  it('has a message for every event, for snapshots and for annotations', () => {
    const messages = Object.keys(at(document, 'components', 'messages'));
    expect(messages).toEqual([...Object.keys(EVENTS), 'state.snapshot', 'run.annotated']);
    expect(Object.keys(at(document, 'channels', 'runEvents', 'messages'))).toEqual(messages);
  });

  it('has no dangling references and no $id', () => {
    for (const reference of findAll(document, '$ref') as string[]) {
      expect(resolve(document, reference), reference).toBeDefined();
    }
    expect(findAll(document, '$id')).toEqual([]);
  });

  it('lists the stream modes of each message', () => {
    expect(at(document, 'components', 'messages', 'run.started')).toMatchObject({
      'x-stream-modes': ['updates', 'debug'],
    });
    expect(at(document, 'components', 'messages', 'output.chunk')).toMatchObject({
      'x-stream-modes': ['messages', 'debug'],
    });
    expect(at(document, 'components', 'messages', 'state.snapshot')).toMatchObject({ 'x-stream-modes': ['values'] });
  });

  it('has schemas that compile', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    const schema = at(document, 'components', 'messages', 'node.skipped', 'payload');
    const check = ajv.compile(schema);
    const event = { eventId: 'e', runId: 'r', timestamp: 't', sequence: 1, payload: { nodeId: 'a' } };
    expect(check({ ...event, type: 'node.skipped' })).toBe(true);
    expect(check({ ...event, type: 'node.failed' })).toBe(false);
  });
});

function at(value: unknown, ...path: string[]): Json {
  return path.reduce((part, key) => (part as Record<string, unknown>)[key], value) as Json;
}

function resolve(document: unknown, reference: string): unknown {
  return reference
    .replace(/^#\//, '')
    .split('/')
    .reduce<unknown>((part, key) => (part as Record<string, unknown> | undefined)?.[key], document);
}

/** All values of a key, wherever it is used as a keyword. */
function findAll(value: unknown, key: string): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, part]) => [...(name === key ? [part] : []), ...findAll(part, key)]);
}
