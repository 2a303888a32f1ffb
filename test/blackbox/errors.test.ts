import fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { fixed, node, register, unique, WORKFLOWS, workflow } from '../support/definitions.ts';
import { expectEnvelope, expectRefusal } from '../support/envelope.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { fill, operationsOf } from '../support/operations.ts';
import { endsWithoutPause } from '../support/patience.ts';
import { exchange, parseAnswer } from '../support/raw.ts';
import { onEachStore, onOneStore } from '../support/stores.ts';
import { Stream } from '../support/stream.ts';

/** core.md 3: whatever is wrong with a request, the answer is the closed envelope, and nothing has happened. */

const JSON_TYPE = { 'content-type': 'application/json' };
const RUNS = '/v1/runs';
const LIST = '/v1/host/capstan/runs';
/** Of the random requests: the same ones each time, so that a failure can be looked at. */
const SEED = 20_261_115;

/** JSON text that is nested so many levels deep, as the value of one input. */
const nested = (levels: number): string =>
  `{"workflowId":"conformance-noop","inputs":{"a":${'['.repeat(levels)}${']'.repeat(levels)}}}`;

/** Characters that stores, logs and terminals have trouble with. */
const NASTY: readonly (readonly [what: string, text: string])[] = [
  ['NUL', '\u0000'],
  ['NUL in the middle', 'a\u0000b'],
  ['control characters', '\u0001\u0007\b\u001b[31m\u007f'],
  ['line breaks', 'a\r\nb\u2028c'],
  ['a lone high surrogate', 'a\ud83db'],
  ['a lone low surrogate', 'a\udc00b'],
  ['the replacement character', '\ufffd'],
  ['noncharacters', '\uffff\ufdd0'],
  ['right-to-left override', '\u202eabc'],
  ['an astral character', '😀'],
  ['SQL', `'; DROP TABLE runs; -- "`],
  ['percent signs', '%s%n%00%%'],
];

/** Ids and filters that the store is asked for. */
function lookUps(host: () => TestHost, awkward: typeof NASTY): void {
  const editor = (): Api => host().as('editor');

  it.each(awkward)('are well-formed for %s in an id of a path', async (_what, text) => {
    const id = encodeURIComponent(text.toWellFormed());
    for (const { method, path, hasBody } of await operationsOf(host().anonymous)) {
      if (!path.includes('{') || path.startsWith('/schemas/')) continue;
      const filled = path.replace(/\{\w+\}/g, id);
      const answer = await host()
        .as('owner')
        .request(method, filled, hasBody ? {} : undefined);
      expect([400, 404, 422], `${method} ${path}: ${answer.status} ${answer.text}`).toContain(answer.status);
      expectEnvelope(answer);
    }
  });

  it.each(awkward)('are well-formed for %s in a workflow id of a body', async (_what, text) => {
    const answer = await editor().post(RUNS, { workflowId: text });
    expect([400, 404], answer.text).toContain(answer.status);
    expectEnvelope(answer);
  });

  it.each(awkward)(
    'are per entry for %s among the ids of a bulk cancel, which come back verbatim',
    async (_what, text) => {
      const answer = await editor().post('/v1/runs:bulk-cancel', { runIds: [text, 'run-absent'] });
      expect(answer.status, answer.text).toBe(200);
      expect(answer.body.results.map(({ runId }: { runId: string }) => runId)).toEqual([text, 'run-absent']);
      expect(answer.body.results[0]).toMatchObject({ ok: false });
      expect(['not_found', 'validation_error']).toContain(answer.body.results[0].error.code);
    },
  );

  it.each(awkward)('are none for %s in filters of the run list', async (_what, text) => {
    const value = encodeURIComponent(text.toWellFormed());
    for (const filter of ['tag', 'workflowId']) {
      const answer = await editor().get(`${LIST}?${filter}=${value}`);
      expect([200, 400], `${filter}: ${answer.status} ${answer.text}`).toContain(answer.status);
      if (answer.status === 400) expectEnvelope(answer);
    }
  });
}

const listed = async (api: Api): Promise<string[]> =>
  (await api.get(`${LIST}?limit=200`)).body.items.map(({ runId }: { runId: string }) => runId);

onOneStore('refusals', (host) => {
  const editor = (): Api => host().as('editor');
  const raw = (text: string, headers: Record<string, string> = JSON_TYPE): Promise<Answer> =>
    editor().request('POST', RUNS, text, headers);

  /** Runs the requests and shows that no run came of any of them. */
  async function expectNothingStored(requests: () => Promise<void>): Promise<void> {
    const before = await listed(editor());
    await requests();
    expect(await listed(editor())).toEqual(before);
  }

  describe('of routes', () => {
    it.each(['/v1/nowhere', '/v1/', '/v1/runs/a/b/c', '/v1/host/capstan/nothing', '/v1/host/sample/nowhere'])(
      'say that %s is not there',
      async (path) => {
        expectRefusal(await editor().get(path), 404, 'not_found');
      },
    );

    it('name the methods that a known path takes', async () => {
      const operations = await operationsOf(host().anonymous);
      for (const path of new Set(operations.map((operation) => operation.path))) {
        const taken = operations.filter((operation) => operation.path === path).map(({ method }) => method);
        const isPage = operations.some(
          ({ method, isPublic, ...operation }) =>
            operation.path === path && method === 'GET' && isPublic && !/[{]|search$|\/sign-in/.test(path),
        );
        if (isPage) taken.push('HEAD');
        for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((name) => !taken.includes(name))) {
          const answer = await host().as('owner').request(method, fill(path, {}));
          expectRefusal(answer, 405, 'method_not_allowed');
          expect(answer.headers.get('allow')?.split(', ').sort(), path).toEqual([...taken].sort());
        }
      }
    });

    it('treat colon verbs as part of the path', async () => {
      expectRefusal(await editor().post('/v1/runs:bulk-delete', {}), 404, 'not_found');
      expectRefusal(await editor().get('/v1/runs/run-a:explode'), 404, 'not_found');
      expectRefusal(await editor().get('/v1/runs/run-a:pause'), 405, 'method_not_allowed');
      expectRefusal(await editor().post('/v1/runs/run-a:pause'), 404, 'not_found');
    });

    it.each(['/v1/runs/%', '/v1/runs/%zz', '/v1/runs/%c3%28', '/v1/runs/%ff%fe', '/v1/runs/%ed%a0%80'])(
      'stay in the envelope for the malformed escape in %s',
      async (path) => {
        const answer = await editor().get(path);
        expect([400, 404]).toContain(answer.status);
        expectEnvelope(answer);
      },
    );
  });

  describe('of bodies', () => {
    it.each([
      ['nothing at all', ''],
      ['half an object', '{"workflowId":'],
      ['a trailing comma', '{"workflowId":"conformance-noop",}'],
      ['single quotes', "{'workflowId':'conformance-noop'}"],
      ['two documents', '{"workflowId":"conformance-noop"}{}'],
      ['a comment', '{"workflowId":"conformance-noop"} // go'],
      ['NaN', '{"workflowId":"conformance-noop","inputs":{"a":NaN}}'],
      ['a bare control character in a string', '{"workflowId":"conformance-noop","inputs":{"a":"\u0001"}}'],
      ['an array', '[]'],
      ['a string', '"conformance-noop"'],
      ['a number', '42'],
      ['null', 'null'],
      ['true', 'true'],
    ])('are 400 for %s', async (_what, text) => {
      await expectNothingStored(async () => expectRefusal(await raw(text), 400, 'validation_error'));
    });

    it('take a byte order mark for nothing worse than bad JSON', async () => {
      const answer = await raw('\ufeff{"workflowId":"conformance-noop"}');
      expect([201, 400]).toContain(answer.status);
      if (answer.status === 400) expectRefusal(answer, 400, 'validation_error');
    });

    it.each([
      ['text', 'text/plain'],
      ['a form', 'application/x-www-form-urlencoded'],
      ['a multipart form', 'multipart/form-data; boundary=x'],
      ['XML', 'application/xml'],
      ['something like JSON', 'application/jsonp'],
      ['nonsense', 'nonsense'],
    ])('are 415 for %s', async (_what, type) => {
      await expectNothingStored(async () => {
        const answer = await raw('{"workflowId":"conformance-noop"}', { 'content-type': type });
        expectRefusal(answer, 415, 'unsupported_media_type');
      });
    });

    it.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON', 'application/vnd.api+json'])(
      'are not made of %s',
      async (type) => {
        expect((await raw('{"workflowId":"conformance-noop"}', { 'content-type': type })).status).toBe(201);
      },
    );

    it('are 413 for what is larger than the advertised limit, and nothing of it is kept', async () => {
      const { maxRequestBodyBytes } = (await host().anonymous.get('/.well-known/openwop')).body.limits;
      await expectNothingStored(async () => {
        const body = { workflowId: 'conformance-noop', inputs: { a: 'x'.repeat(maxRequestBodyBytes) } };
        expectRefusal(await editor().post(RUNS, body), 413, 'payload_too_large');
      });
    });

    it('reach whoever still sends, and the connection goes on', async () => {
      const { maxRequestBodyBytes } = (await host().anonymous.get('/.well-known/openwop')).body.limits;
      const length = 2 * maxRequestBodyBytes;
      const head = `POST ${RUNS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEYS.editor.key}`;
      const large = `${head}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${'x'.repeat(length)}`;
      const next = 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
      const answered = await exchange(host().url, large + next);
      expect([...answered.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['413', '200']);
    });

    it('are 400 for what is nested too deeply, however deeply that is', async () => {
      await expectNothingStored(async () => {
        for (const levels of [100, 5_000, 200_000]) expectRefusal(await raw(nested(levels)), 400, 'validation_error');
        const objects = `{"workflowId":"conformance-noop","inputs":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`;
        expectRefusal(await raw(objects), 400, 'validation_error');
      });
    });

    it('are not made of reasonable depth', async () => {
      expect((await raw(nested(30))).status).toBe(201);
    });

    it.each(['{"__proto__":{"isAdmin":true}', '{"a":{"__proto__":{"isAdmin":true}}', '{"\\u005f_proto__":1'])(
      'never let %s reach a prototype',
      async (start) => {
        await expectNothingStored(async () => {
          const answer = await raw(`{"workflowId":"conformance-noop","inputs":${start}}}`);
          expectRefusal(answer, 400, 'validation_error');
        });
        expect({}).not.toHaveProperty('isAdmin');
      },
    );

    it('take other names of Object.prototype for plain names', async () => {
      const inputs = { constructor: { prototype: { a: 1 } }, toString: 'x', hasOwnProperty: null, valueOf: [1] };
      const runId = await editor().run('conformance-noop', { inputs, metadata: { constructor: 1 } });
      const snapshot = await editor().ended(runId);
      expect(snapshot.inputs).toEqual(inputs);
      expect(snapshot.variables).toEqual(inputs);
      expect(snapshot.metadata).toEqual({ constructor: 1 });
    });

    it.each([
      ['POST', RUNS, { workflowId: 'conformance-noop', surprise: 1 }],
      ['POST', RUNS, { workflowId: 'conformance-noop', Inputs: {} }],
      ['POST', '/v1/runs:bulk-cancel', { runIds: ['run-a'], all: true }],
      ['POST', '/v1/runs/{runId}/cancel', { reason: 'x', force: true }],
      ['POST', '/v1/runs/{runId}:pause', { drain: 'immediate' }],
      ['POST', '/v1/runs/{runId}:resume', { at: 1 }],
    ])('are 400 for unknown keys: %s %s %j', async (method, path, body) => {
      const runId = await editor().run('conformance-cancellable');
      const answer = await editor().request(method, fill(path, { runId }), body);
      expectRefusal(answer, 400, 'validation_error');
      expect((await editor().get(`/v1/runs/${runId}`)).body.status).toBe('running');
      await editor().post(`/v1/runs/${runId}/cancel`);
    });

    it.each([
      [{}],
      [{ workflowId: '' }],
      [{ workflowId: 7 }],
      [{ workflowId: null }],
      [{ workflowId: ['conformance-noop'] }],
      [{ workflowId: 'conformance-noop', inputs: [] }],
      [{ workflowId: 'conformance-noop', inputs: 'x' }],
      [{ workflowId: 'conformance-noop', inputs: null }],
      [{ workflowId: 'conformance-noop', tags: 'x' }],
      [{ workflowId: 'conformance-noop', tags: [1] }],
      [{ workflowId: 'conformance-noop', tags: [''] }],
      [{ workflowId: 'conformance-noop', metadata: [] }],
      [{ workflowId: 'conformance-noop', configurable: [] }],
      [{ workflowId: 'conformance-noop', tenantId: 1 }],
      [{ workflowId: 'conformance-noop', scopeId: {} }],
      [{ workflowId: 'conformance-noop', callbackUrl: 'not a url' }],
      [{ workflowId: 'conformance-noop', mode: 'live' }],
    ])('are 400 for wrong types: %j', async (body) => {
      await expectNothingStored(async () => {
        const answer = await editor().post(RUNS, body);
        expectRefusal(answer, 400, 'validation_error');
        expect(answer.body.details).toBeDefined();
      });
    });

    it('never quote what was sent', async () => {
      const secret = 'a-word-to-search-for';
      const answers = await Promise.all([
        editor().post(RUNS, { workflowId: 'conformance-noop', tags: [{ [secret]: secret }] }),
        editor().post(RUNS, { workflowId: secret }),
        editor().post(RUNS, { workflowId: 'conformance-noop', configurable: { temperature: secret } }),
        raw(`{"workflowId":"${secret}`),
        editor().get(`/v1/runs/${secret}`),
        editor().get(`/v1/workflows/${secret}`),
        editor().get(`${LIST}?status=${secret}`),
      ]);
      for (const answer of answers) {
        expectEnvelope(answer);
        expect(answer.text).not.toContain(secret);
      }
    });

    it('of optional bodies are as strict as of others', async () => {
      const runId = await editor().run('conformance-cancellable');
      for (const text of ['[]', '"x"', '1', '{', '{"reason":1}', '{"reason":null}']) {
        for (const path of [`/v1/runs/${runId}/cancel`, `/v1/runs/${runId}:pause`, `/v1/runs/${runId}:resume`]) {
          expectRefusal(await editor().request('POST', path, text, JSON_TYPE), 400, 'validation_error');
        }
      }
      expect((await editor().get(`/v1/runs/${runId}`)).body.status).toBe('running');
      await editor().post(`/v1/runs/${runId}/cancel`);
    });
  });

  describe('of paths and queries', () => {
    it.each([129, 500, 2_000])('are in the envelope for ids of %d characters', async (length) => {
      const id = 'x'.repeat(length);
      for (const { method, path, hasBody } of await operationsOf(host().anonymous)) {
        if (!path.includes('{') || path.startsWith('/schemas/')) continue;
        const filled = fill(path, { runId: id, workflowId: id, artifactId: id });
        const answer = await host()
          .as('owner')
          .request(method, filled, hasBody ? {} : undefined);
        expect([400, 404], `${method} ${path}: ${answer.text}`).toContain(answer.status);
        expectEnvelope(answer);
        expect(answer.text).not.toContain(id);
      }
    });

    it('are in the envelope for a path longer than anyone needs', async () => {
      const answer = await fetchSafely(() => editor().get(`/v1/runs/${'x'.repeat(12_000)}`));
      expect([400, 404, 414, 431]).toContain(answer.status);
      expectEnvelope(answer);
    });

    it('are 404, not 400, for a run id of 128 characters that nobody has', async () => {
      expectRefusal(await editor().get(`/v1/runs/${'x'.repeat(128)}`), 404, 'not_found');
    });

    it.each([
      'limit=0',
      'limit=-1',
      'limit=201',
      'limit=1.5',
      'limit=ten',
      'limit=',
      'limit=1&limit=2',
      'limit=99999999999999999999',
      'cursor=',
      'cursor=%00',
      'cursor=not-base64!',
      'cursor=YQ==',
      'cursor=Jw',
      `cursor=${'a'.repeat(600)}`,
      `cursor=${Buffer.from("' OR 1=1 --").toString('base64url')}`,
      'nonsense=1',
    ])('are 400 for lists with %s', async (query) => {
      for (const path of [LIST, WORKFLOWS]) {
        expectRefusal(await editor().get(`${path}?${query}`), 400, 'validation_error');
      }
    });

    it.each([
      'status=finished',
      'status=',
      'status=running&status=failed',
      'since=yesterday',
      'since=2026-13-01T00:00:00Z',
      'since=2026-02-30T00:00:00Z',
      'since=2026-01-01',
      'since=1767225600000',
      'until=2026-01-01T25:00:00Z',
      'until=',
      'workflowId=',
      'tag=',
      `tag=${'x'.repeat(257)}`,
      `workflowId=${'x'.repeat(129)}`,
    ])('are 400 for a run list with %s', async (query) => {
      expectRefusal(await editor().get(`${LIST}?${query}`), 400, 'validation_error');
    });
  });

  describe('of raw bytes', () => {
    const ask = async (bytes: string): Promise<Answer> => parseAnswer(await exchange(host().url, bytes));

    it.each([
      ['no HTTP at all', 'hello\r\n\r\n'],
      ['a line of TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
      ['a version that there is not', 'GET /v1/runs/a HTTP/9.9\r\nHost: a\r\n\r\n'],
      ['a method that there is not', 'FETCH /v1/runs/a HTTP/1.1\r\nHost: a\r\n\r\n'],
      ['a blank in a header name', 'GET /v1/runs/a HTTP/1.1\r\nHost: a\r\nBad Name: x\r\n\r\n'],
      ['a control character in a header', 'GET /v1/runs/a HTTP/1.1\r\nHost: a\r\nX-A: \x01\x02\r\n\r\n'],
      ['two lengths', 'POST /v1/runs HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
      ['a length that is no number', 'POST /v1/runs HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n'],
      [
        'a length and chunks',
        'POST /v1/runs HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      ],
      ['a blank in the path', 'GET /v1/runs/a b HTTP/1.1\r\nHost: a\r\n\r\n'],
    ])('are the envelope for %s', async (_what, bytes) => {
      const answer = await ask(bytes);
      expectRefusal(answer, 400, 'validation_error');
      expect(answer.headers.get('connection')).toBe('close');
    });

    it('are the envelope for headers that are too large', async () => {
      const answer = await ask(`GET /v1/runs/a HTTP/1.1\r\nHost: a\r\nX-Big: ${'x'.repeat(100_000)}\r\n\r\n`);
      expect(answer.status).toBe(431);
      expectEnvelope(answer);
    });

    it('are the envelope for too many headers', async () => {
      const many = Array.from({ length: 3_000 }, (_, index) => `X-H${index}: ${index}`).join('\r\n');
      const answer = await ask(`GET /v1/runs/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${many}\r\n\r\n`);
      expect([401, 431]).toContain(answer.status);
      expectEnvelope(answer);
    });

    it('are the envelope for bad chunks of a body', async () => {
      const answer = await ask(
        `POST /v1/runs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${KEYS.editor.key}\r\nContent-Type: application/json\r\n` +
          'Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n',
      );
      expectRefusal(answer, 400, 'validation_error');
    });

    it.each(['PROPFIND', 'TRACE', 'SEARCH', 'MKCOL'])('are the envelope for the method %s', async (method) => {
      const authorization = `Authorization: Bearer ${KEYS.editor.key}`;
      const answer = await ask(
        `${method} /v1/runs HTTP/1.1\r\nHost: a\r\n${authorization}\r\nConnection: close\r\n\r\n`,
      );
      expect([404, 405, 501]).toContain(answer.status);
      expectEnvelope(answer);
    });

    it('leave the host well', async () => {
      expect((await host().anonymous.get('/healthz')).status).toBe(200);
    });
  });

  const ask = async (bytes: string): Promise<Answer> => parseAnswer(await exchange(host().url, bytes));

  it.each(['HEAD', 'OPTIONS'])('%s on a known path is 405 with Allow', async (method) => {
    const answer = await editor().request(method, RUNS);
    expect(answer.status).toBe(405);
    expect(answer.headers.get('allow')).toBe('POST');
  });

  it('a request without a Host header is refused in the envelope', async () => {
    expectRefusal(await ask('GET /v1/runs/a HTTP/1.1\r\nConnection: close\r\n\r\n'), 400, 'validation_error');
  });

  it('an expectation that nobody knows is refused in the envelope', async () => {
    const answer = await ask('POST /v1/runs HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\nConnection: close\r\n\r\n');
    expect(answer.status).toBe(417);
    expectEnvelope(answer);
  });

  describe('of awkward characters', () => {
    lookUps(
      host,
      NASTY.filter(([, text]) => !text.includes('\u0000')),
    );
  });
});

/** What the store itself has to take. */
onEachStore('refusals that reach the store', (host) => {
  const editor = (): Api => host().as('editor');

  describe('of bodies', () => {
    it('are not made of what just fits', async () => {
      const { maxRequestBodyBytes } = (await host().anonymous.get('/.well-known/openwop')).body.limits;
      const empty = JSON.stringify({ workflowId: 'conformance-noop', inputs: { a: '' } });
      const text = JSON.stringify({
        workflowId: 'conformance-noop',
        inputs: { a: 'x'.repeat(maxRequestBodyBytes - empty.length) },
      });
      expect(text.length).toBe(maxRequestBodyBytes);
      expect((await editor().request('POST', RUNS, text, JSON_TYPE)).status).toBe(201);
    });
  });

  describe('of paths and queries', () => {
    it('are none for a leap second in a filter: it is read as the next second', async () => {
      await editor().run('conformance-noop');
      const answer = await editor().get(`${LIST}?since=2016-12-31T23:59:60Z`);
      expect(answer.status, answer.text).toBe(200);
      expect(answer.body.items.length).toBeGreaterThan(0);
    });

    it('are none for the end of time in a filter: it comes after every run', async () => {
      await editor().run('conformance-noop');
      const all = await listed(editor());
      const until = await editor().get(`${LIST}?limit=200&until=9999-12-31T23:59:59Z`);
      expect(until.body.items.map(({ runId }: { runId: string }) => runId)).toEqual(all);
      expect((await editor().get(`${LIST}?since=9999-12-31T23:59:59Z`)).body.items).toEqual([]);
    });
  });

  describe('of awkward characters', () => {
    it.each(NASTY)(
      'are none for %s in everything about a run that is only kept: it comes back as it was',
      async (_what, text) => {
        const given = { inputs: { [`k${text}`]: [text, { deep: text }] }, tags: [text], metadata: { [text]: text } };
        const configurable = { 'acme.note': text, model: `m${text}`, promptOverrides: { [text]: text } };
        const runId = await editor().run('conformance-noop', { ...given, configurable, scopeId: text });
        const snapshot = await editor().ended(runId);
        expect(snapshot).toMatchObject({ status: 'completed', ...given, configurable });
        const { body } = await editor().get(`${LIST}?tag=${encodeURIComponent(text.toWellFormed())}`);
        if (text.isWellFormed()) expect(body.items.map((item: { runId: string }) => item.runId)).toContain(runId);
      },
    );

    it.each(NASTY)('are none for %s in reasons', async (_what, text) => {
      const runId = await editor().run('conformance-cancellable');
      const answers = [
        await editor().post(`/v1/runs/${runId}:pause`, { reason: text, drainPolicy: 'immediate' }),
        await editor().post(`/v1/runs/${runId}:resume`, { reason: text }),
        await editor().post(`/v1/runs/${runId}/cancel`, { reason: text }),
      ];
      expect(answers.map(({ status }) => status)).toEqual([202, 202, 200]);
      const events = await editor().events(runId);
      const reasons = events.filter(({ type }) => /^run\.(paused|resumed|cancelled)$/.test(type));
      expect(reasons.map(({ payload }) => payload.reason)).toEqual([text, text, text]);
    });

    it.each(NASTY)('are none for %s in values that pass through nodes', async (_what, text) => {
      const runId = await editor().run('conformance-identity', { inputs: { payload: { text, [`k${text}`]: [text] } } });
      const snapshot = await editor().ended(runId);
      expect(snapshot.variables.payload).toEqual({ text, [`k${text}`]: [text] });
      expect(snapshot.nodeStates.echo.outputs.payload).toEqual(snapshot.variables.payload);
    });

    it.each(NASTY)('are none for %s in streams: each frame stays one frame', async (_what, text) => {
      const runId = await editor().run('conformance-identity', { inputs: { payload: { text } } });
      await editor().ended(runId);
      const { frames } = await editor().frames(`/v1/runs/${runId}/events?streamMode=debug`);
      const events = await editor().events(runId);
      expect(frames.map(({ data }) => JSON.parse(data!))).toEqual(events);
    });

    it.each(NASTY)('are none for %s as an idempotency key: refused or honoured', async (_what, text) => {
      // Header values are bytes: only what fits into one byte each can be sent at all.
      const latin = Buffer.from(text.toWellFormed(), 'utf8').toString('latin1');
      const bytes = [
        `POST ${RUNS} HTTP/1.1`,
        `Host: localhost`,
        `Authorization: Bearer ${KEYS.editor.key}`,
        `Content-Type: application/json`,
        `Content-Length: 33`,
        `Connection: close`,
        `Idempotency-Key: ${latin.replaceAll(/[\r\n]/g, '_')}`,
        '',
        '{"workflowId":"conformance-noop"}',
      ].join('\r\n');
      const answer = parseAnswer(await exchange(host().url, bytes));
      expect([201, 400], answer.text).toContain(answer.status);
      if (answer.status === 400) expectEnvelope(answer);
    });
  });

  describe('of random JSON', () => {
    /** Values with a fair chance of meaning something to the route they hit. */
    const anything = fc.jsonValue({ maxDepth: 4, stringUnit: 'binary' });
    const names = fc.constantFrom(
      'workflowId',
      'inputs',
      'tags',
      'metadata',
      'configurable',
      'runIds',
      'reason',
      'drainPolicy',
      'id',
      'name',
      'version',
      'nodes',
      'edges',
      'triggers',
      'variables',
      'settings',
      'channels',
      'scopeId',
      'mode',
    );
    const values = fc.oneof(
      anything,
      fc.constantFrom('conformance-noop', 'immediate', 'eval', 'run-x', {}, [], [{}], 1),
    );
    const documents = fc.oneof(anything, fc.dictionary(names, values, { maxKeys: 8 }));

    it('are below 500 and in the envelope, on every operation that takes a body', async () => {
      const targets = (await operationsOf(host().anonymous)).filter(({ hasBody }) => hasBody);
      expect(targets.length).toBeGreaterThanOrEqual(7);
      const runId = await editor().run('conformance-noop');
      await editor().ended(runId);
      await fc.assert(
        fc.asyncProperty(fc.constantFrom(...targets), documents, async ({ method, path }, body) => {
          const text = JSON.stringify(body);
          const answer = await editor().request(method, fill(path, { runId, workflowId: 'wf-fuzz' }), text, JSON_TYPE);
          expect(answer.status, `${method} ${path} ${text}: ${answer.text}`).toBeLessThan(500);
          if (answer.status >= 400) expectEnvelope(answer);
        }),
        { numRuns: 250, seed: SEED },
      );
      expect((await editor().get(`/v1/runs/${runId}`)).body.status).toBe('completed');
    });

    it('are below 500 and in the envelope for random changes to a workflow definition', async () => {
      const base = workflow([node('a', 'core.delay', { config: { ms: 1 }, inputs: { x: fixed(1) } })]);
      const paths = ['id', 'name', 'nodes.0', 'nodes.0.id', 'nodes.0.typeId', 'nodes.0.config', 'nodes.0.config.ms']
        .concat([
          'nodes.0.inputs',
          'nodes.0.inputs.x',
          'nodes.0.settings',
          'edges',
          'variables',
          'triggers',
          'channels',
        ])
        .concat(['settings', 'settings.timeout', 'metadata', 'configurableSchema', 'defaults', 'groups', 'nodes']);
      const key = fc.constantFrom(...paths);
      await fc.assert(
        fc.asyncProperty(key, anything, async (path, value) => {
          const body = structuredClone({ ...base, id: unique('wf') }) as Answer['body'];
          const steps = path.split('.');
          const parent = steps.slice(0, -1).reduce((at, step) => at[step], body);
          parent[steps.at(-1)!] = value;
          const answer = await editor().post(WORKFLOWS, body);
          expect(answer.status, `${path} ${JSON.stringify(value)}: ${answer.text}`).toBeLessThan(500);
          if (answer.status >= 400) expectEnvelope(answer);
        }),
        { numRuns: 150, seed: SEED },
      );
    });
  });

  lookUps(
    host,
    NASTY.filter(([, text]) => text.includes('\u0000')),
  );

  it('an error code with NUL in it ends the run like any other', async () => {
    const fails = node('f', 'core.fail', { config: { code: 'a\u0000b', message: 'm' } });
    const runId = await editor().run(await register(editor(), workflow([fails])));
    try {
      expect(await endsWithoutPause(editor(), runId, 20)).toBe(true);
      const { body } = await editor().get(`/v1/runs/${runId}`);
      expect(body).toMatchObject({ status: 'failed', error: { code: 'a\u0000b' } });
    } finally {
      // A run that cannot be written keeps the host from stopping.
      await editor().post(`/v1/runs/${runId}/cancel`);
    }
  });
});

describe('a host at capacity', () => {
  it('says so in the envelope, with the same hint in the header and in details', async () => {
    const host = await startTestHost('sqlite', inject('postgresUrl'), { inFlightMax: 2 });
    try {
      const api = host.as('editor');
      const runId = await api.run('conformance-cancellable');
      const events = `${host.url}/v1/runs/${runId}/events`;
      const open = [await Stream.open(events, KEYS.editor.key), await Stream.open(events, KEYS.editor.key)];
      const refused = await api.get(`/v1/runs/${runId}`);
      expectRefusal(refused, 503, 'service_unavailable');
      expect(refused.body.details.retryAfter).toBe(Number(refused.headers.get('retry-after')));
      expect((await host.anonymous.get('/.well-known/openwop')).status).toBe(200);
      expect((await host.anonymous.get('/healthz')).status).toBe(200);
      for (const stream of open) stream.drop();
    } finally {
      await host.stop();
    }
  });
});

/** A refusal that comes before the body has been sent may cut the connection; then the request is made again. */
async function fetchSafely(request: () => Promise<Answer>): Promise<Answer> {
  for (let tries = 0; ; tries++) {
    try {
      return await request();
    } catch (error) {
      if (tries === 5) throw error;
    }
  }
}
