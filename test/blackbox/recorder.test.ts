import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { edge, node, register, workflow } from '../support/definitions.ts';
import { startTestHost } from '../support/host.ts';
import type { Check } from '../support/recorder/compile.ts';
import { EXCEPTIONS } from '../support/recorder/exceptions.ts';
import { Judge } from '../support/recorder/judge.ts';
import { type OwnDocuments, ownDocuments } from '../support/recorder/own-documents.ts';
import { publishedSchemas } from '../support/recorder/published.ts';
import { recorder } from '../support/recorder/recorder.ts';
import { MAPPED } from '../support/recorder/table.ts';

/** The recorder that holds the answers of all black-box tests against the schemas: it must not be blind. */

const PAGES = fileURLToPath(new URL('../../../shared/', import.meta.url));
const published = publishedSchemas();

let own: OwnDocuments;
let judge: Judge;
beforeAll(async () => {
  own = await ownDocuments();
  judge = new Judge(own, published);
});

describe('the recorder', () => {
  const json = { method: 'GET', status: 200, type: 'application/json; charset=utf-8' };
  const judged = (path: string, status: number, body: unknown): string[] => {
    const head = { ...json, path, status };
    const operation = judge.operationOf(head);
    return [...judge.head(head, operation), ...judge.body(head, operation, JSON.stringify(body), body)];
  };

  it('knows the operation of a path by its verb, its alias and without its query', () => {
    const named = (method: string, path: string) => own.operationOf(method, path)?.name;
    expect(named('GET', '/v1/runs/run-1?a=/b')).toBe('GET /v1/runs/{runId}');
    expect(named('POST', '/v1/runs/run-1:fork')).toBe('POST /v1/runs/{runId}:fork');
    expect(named('GET', '/v1/runs/run-1:fork')).toBeUndefined();
    expect(named('GET', '/v1/host/sample/goals/goal-1')).toBe('GET /v1/goals/{goalId}');
    expect(named('GET', '/v1/nowhere')).toBeUndefined();
  });

  it('sees a body of another shape, a status that is not documented and a refusal without the envelope', () => {
    expect(judged('/v1/runs/run-1', 200, { runId: 'run-1' })).not.toEqual([]);
    expect(judged('/v1/runs/run-1', 418, { error: 'teapot', message: 'no' })).toEqual([
      'the OpenAPI document has no 418',
    ]);
    expect(judged('/v1/nowhere', 404, { message: 'no' })).not.toEqual([]);
    expect(judged('/v1/nowhere', 404, { error: 'not_found', message: 'no' })).toEqual([]);
  });

  it('sees a frame, an event and a payload of another shape', () => {
    const stream = own.operationOf('GET', '/v1/runs/run-1/events');
    const event = {
      eventId: 'evt-1',
      runId: 'run-1',
      nodeId: 'a',
      type: 'node.started',
      payload: { nodeId: 'a', typeId: 'core.noop', attempt: 1 },
      timestamp: '2026-01-01T00:00:00.000Z',
      sequence: 1,
      schemaVersion: 1,
      engineVersion: '1',
    };
    const seen = (change: object, name = 'node.started') =>
      judge.frame(stream, { id: '1', event: name, data: JSON.stringify({ ...event, ...change }) });
    expect(seen({})).toEqual([]);
    expect(seen({ payload: { nodeId: 7 } })).not.toEqual([]);
    expect(seen({ timestamp: 'noon' })).not.toEqual([]);
    expect(seen({ type: 'node.unheard' })).not.toEqual([]);
    expect(judge.frame(stream, { event: 'batch', data: JSON.stringify([{ ...event, sequence: -1 }]) })).not.toEqual([]);
  });

  it('hears what a test asks of a host, whoever reads it', async () => {
    const host = await startTestHost('sqlite', inject('postgresUrl'));
    const kind = 'GET /.well-known/openwop 200';
    const before = recorder.tally.answers[kind] ?? 0;
    await host.anonymous.get('/.well-known/openwop');
    const response = await fetch(`${host.url}/.well-known/openwop`);
    expect(await new Response(response.body).json()).toHaveProperty('protocolVersion');
    expect(recorder.tally.answers[kind]).toBe(before + 2);
    await host.stop();
  });

  it('has schemas only for what the host serves', () => {
    const served = MAPPED.filter((kind) => {
      const [, name = '', status = ''] = /^(\S+ \S+) (\d+)$/.exec(kind) ?? [];
      const [method = '', path = ''] = name.split(' ');
      return own.operationOf(method, path.replace(/\{\w+\}/g, 'x'))?.statuses.includes(status);
    });
    expect(served).toEqual(MAPPED);
  });
});

describe('what was decided against a published schema', () => {
  const DEFINITION = workflow(
    [
      node('a', 'core.channelWrite', {
        config: { channelName: 'talk', reducer: 'message', value: { id: 'm-1', text: 'Hello' } },
        irreversibleEffect: true,
      }),
      node('b'),
    ],
    [edge('a', 'b', { condition: { type: 'truthy', left: 'any' } })],
    { variables: [{ name: 'due', type: 'string', format: 'date' }], channels: { talk: { reducer: 'message' } } },
  );
  const ANOMALIES = {
    fromSeq: 0,
    toSeq: 9,
    chainValid: false,
    checkpoints: [],
    anomalies: [{ kind: 'merkle-mismatch', atSeq: 3, checkpoint: 'cp-1' }],
  };

  /** By the name of the schema, something that the host sends and that the schema refuses. */
  let samples: Record<string, unknown>;
  beforeAll(async () => {
    const host = await startTestHost('sqlite', inject('postgresUrl'));
    const api = host.as('editor');
    const runId = await api.run(await register(api, DEFINITION));
    await api.ended(runId);
    const { body } = await api.get(`/v1/runs/${runId}/debug-bundle`);
    samples = {
      'workflow-definition': (await api.get(`/v1/workflows/${DEFINITION.id}`)).body,
      'payload of channel.written': body.events.find(({ type }: { type: string }) => type === 'channel.written')
        .payload,
      'debug-bundle': body,
      'audit-verify-result': ANOMALIES,
    };
    await host.stop();
  });

  it('is what the host sends', () => {
    expect(samples).toMatchObject({
      'workflow-definition': DEFINITION,
      'payload of channel.written': { reducer: 'message' },
      'debug-bundle': { bundleVersion: '1' },
    });
    expect(new Set(EXCEPTIONS.map(({ schema }) => schema))).toEqual(new Set(Object.keys(samples)));
  });

  it('is still refused by the schema, where it is at hand: an exception that is not needed goes', () => {
    const checkOf = (schema: string): Check | undefined =>
      schema.startsWith('payload of ') ? published?.payload(schema.slice(11)) : published?.check(schema);
    const needless = EXCEPTIONS.filter(({ schema, problem }) => {
      const check = checkOf(schema);
      return check && !check(samples[schema]).some((text) => problem.test(text));
    });
    expect(needless).toEqual([]);
  });

  it('is still in the page that decides, where it is at hand', () => {
    const pages = EXCEPTIONS.filter(({ page }) => existsSync(PAGES + page));
    expect(pages.filter(({ page, decision }) => !readFileSync(PAGES + page, 'utf8').includes(decision))).toEqual([]);
  });
});
