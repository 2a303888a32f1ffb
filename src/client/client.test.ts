import { describe, expect, it } from 'vitest';
import { createClient } from './client.ts';
import { NotProvidedError, RefusedError, UnreachableError } from './errors.ts';
import { json, TestMachine } from './testing.ts';

const HOST = {
  implementation: { name: 'capstan' },
  feedback: { supported: true },
  prompts: { mutableLibrary: true },
};
const RUN = { runId: 'run-1', status: 'pending', eventsUrl: 'http://host/v1/runs/run-1/events' };

function clientOf(machine: TestMachine) {
  return createClient({ url: 'http://host/', key: 'secret', machine });
}

describe('a call', () => {
  it('puts its arguments into path, query and body, and sends the credential', async () => {
    const machine = new TestMachine(({ url }) => json(url.includes('well-known') ? HOST : { items: [] }));
    const client = clientOf(machine);
    await client.getArtifact('run/1', 'a:b');
    await client.listRuns({ status: 'failed', limit: 5 });
    await client.updatePromptTemplate('t', { templateId: 't' } as never, { workspaceId: 'north' });
    await client.resolveInterruptByRun('run-1', 'gate', { resumeValue: 7 });
    expect(machine.requests.map(({ method, url, body }) => [method, url, body])).toEqual([
      ['GET', 'http://host/v1/runs/run%2F1/artifacts/a%3Ab', undefined],
      ['GET', 'http://host/.well-known/openwop', undefined],
      ['GET', 'http://host/v1/host/capstan/runs?status=failed&limit=5', undefined],
      ['PUT', 'http://host/v1/prompts/t?workspaceId=north', { templateId: 't' }],
      ['POST', 'http://host/v1/runs/run-1/interrupts/gate', { resumeValue: 7 }],
    ]);
    expect(machine.requests[0]!.headers.get('authorization')).toBe('Bearer secret');
  });

  it('is retried with one idempotency key after a network error; other calls have their own key', async () => {
    const machine = new TestMachine((_asked, count) => {
      if (count <= 2) throw new TypeError('fetch failed', { cause: { code: 'ECONNRESET' } });
      return json(RUN, 201);
    });
    const client = clientOf(machine);
    expect(await client.createRun({ workflowId: 'w' })).toEqual(RUN);
    await client.createRun({ workflowId: 'w' });
    await client.createRun({ workflowId: 'w' }, { idempotencyKey: 'mine' });
    expect(machine.requests.map(({ headers }) => headers.get('idempotency-key'))).toEqual([
      'name-1',
      'name-1',
      'name-1',
      'name-2',
      'mine',
    ]);
    expect(machine.pauses).toEqual([100, 200]);
  });

  it.each([
    ['seconds', '7', 7_000],
    ['a date', new Date(Date.parse('2026-01-01T00:00:09Z')).toUTCString(), 9_000],
  ])('waits as long as the host asks, in %s', async (_how, retryAfter, ms) => {
    const machine = new TestMachine((_asked, count) =>
      count === 1 ? json({ error: 'rate_limited', message: 'm' }, 429, { 'retry-after': retryAfter }) : json(RUN, 201),
    );
    await clientOf(machine).createRun({ workflowId: 'w' });
    expect(machine.pauses).toEqual([ms]);
  });

  it('gives up when Retry-After exceeds the retry time', async () => {
    const answer = { error: 'service_unavailable', message: 'm' };
    const machine = new TestMachine(() => json(answer, 503, { 'retry-after': '3600' }));
    await expect(clientOf(machine).getRun('run-1')).rejects.toMatchObject({ status: 503, retryAfterMs: 3_600_000 });
    expect(machine.requests).toHaveLength(1);
  });

  it('reports code and details of a refusal without a retry', async () => {
    const machine = new TestMachine(() =>
      json({ error: 'forbidden', message: 'No.', details: { scopeRequired: 'runs:read' } }, 403),
    );
    const error = await clientOf(machine)
      .getRun('run-1')
      .then(undefined, (thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RefusedError);
    expect(error).toMatchObject({ status: 403, code: 'forbidden', details: { scopeRequired: 'runs:read' } });
    expect(machine.requests).toHaveLength(1);
  });

  it('reports an unreachable host after a few attempts', async () => {
    const machine = new TestMachine(() => {
      throw new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } });
    });
    const error = await clientOf(machine)
      .getRun('run-1')
      .then(undefined, (thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UnreachableError);
    expect((error as Error).message).toBe('Cannot reach http://host: ECONNREFUSED.');
    expect(machine.requests).toHaveLength(4);
  });

  it('says that a browser blocked it where the host is there and only its answer may not be read', async () => {
    const opaque = Object.defineProperty(new Response(), 'type', { value: 'opaque' });
    const machine = new TestMachine(({ url }) => {
      if (url === 'http://host/healthz') return opaque;
      throw new TypeError('Failed to fetch');
    });
    const inPage = (origin: string) =>
      createClient({ url: 'http://host', machine: { ...machine, pageOrigin: () => origin } });
    await expect(inPage('https://app.example').getRun('run-1')).rejects.toThrow(
      /blocked by the browser's origin rules/,
    );
    await expect(inPage('http://host').getRun('run-1')).rejects.toThrow(/^Cannot reach http:\/\/host/);
  });

  it('rejects a reply that is not JSON', async () => {
    const machine = new TestMachine(() => new Response('<html>'));
    await expect(clientOf(machine).getRun('run-1')).rejects.toMatchObject({ code: 'unreadable_answer' });
  });

  it('stops when its signal aborts, also between two attempts', async () => {
    const controller = new AbortController();
    const machine = new TestMachine(() => {
      controller.abort(new Error('enough'));
      return json({ error: 'service_unavailable', message: 'm' }, 503);
    });
    await expect(clientOf(machine).getRun('run-1', { signal: controller.signal })).rejects.toThrow('enough');
    expect(machine.requests).toHaveLength(1);
  });
});

describe('an operation that discovery does not list', () => {
  it.each([
    ['a family that is absent', { implementation: { name: 'other' } }],
    ['a family that is switched off', { implementation: { name: 'other' }, feedback: { supported: false } }],
  ])('is not asked for: %s', async (_what, document) => {
    const machine = new TestMachine(() => json(document));
    await expect(clientOf(machine).listAnnotations('run-1')).rejects.toBeInstanceOf(NotProvidedError);
    expect(machine.requests.map(({ url }) => url)).toEqual(['http://host/.well-known/openwop']);
  });

  it('is not called: Capstan routes on another implementation', async () => {
    const machine = new TestMachine(() => json({ implementation: { name: 'other' } }));
    await expect(clientOf(machine).listRuns()).rejects.toBeInstanceOf(NotProvidedError);
  });

  it('is asked for where the host has it: proposals and goals of other hosts are under their prefix', async () => {
    const agents = { proposals: {}, goals: {} };
    const urlsOn = async (document: object): Promise<string[]> => {
      const machine = new TestMachine(({ url }) => json(url.includes('well-known') ? { agents, ...document } : {}));
      const client = clientOf(machine);
      await client.getProposal('prop-1');
      await client.listGoals();
      return machine.requests.slice(1).map(({ url }) => new URL(url).pathname);
    };
    const [plain, prefixed] = [
      ['/v1/proposals/prop-1', '/v1/goals'],
      ['/v1/host/sample/proposals/prop-1', '/v1/host/sample/goals'],
    ];
    expect(await urlsOn({ implementation: { name: 'capstan' } })).toEqual(plain);
    expect(await urlsOn({ implementation: { name: 'other' } })).toEqual(prefixed);
    expect(await urlsOn({ paths: { '/v1/proposals/{id}': {}, '/v1/goals': {} } })).toEqual(plain);
  });

  it('fails when the document cannot be read, and reads it again the next time', async () => {
    const machine = new TestMachine(({ url }, count) =>
      count === 1 ? json({ error: 'internal_error', message: 'm' }, 500) : json(url.includes('well-known') ? HOST : {}),
    );
    const client = clientOf(machine);
    await expect(client.listAnnotations('run-1')).rejects.toMatchObject({ status: 500 });
    await client.listAnnotations('run-1');
    expect(machine.requests).toHaveLength(3);
  });

  it('is found under capabilities, as older hosts list it', async () => {
    const machine = new TestMachine(({ url }) =>
      json(url.includes('well-known') ? { capabilities: { feedback: { supported: true } } } : { annotations: [] }),
    );
    expect(await clientOf(machine).listAnnotations('run-1')).toEqual({ annotations: [] });
  });
});

describe('a list', () => {
  it('is fetched page by page, with its filters', async () => {
    const machine = new TestMachine(({ url }) => {
      if (url.includes('well-known')) return json(HOST);
      const cursor = new URL(url).searchParams.get('cursor');
      return json(cursor === null ? { items: [1, 2], nextCursor: 'more' } : { items: [3] });
    });
    const items: unknown[] = [];
    for await (const item of clientOf(machine).each('listRuns', { tag: 'x' })) items.push(item);
    expect(items).toEqual([1, 2, 3]);
    expect(machine.requests.slice(1).map(({ url }) => new URL(url).search)).toEqual(['?tag=x', '?tag=x&cursor=more']);
  });
});

describe('a list with its own item property', () => {
  it('is iterated', async () => {
    const machine = new TestMachine(({ url }) => {
      if (url.includes('well-known')) return json({ agents: { goals: { supported: true } } });
      return json(url.includes('cursor') ? { goals: [{ id: 'b' }] } : { goals: [{ id: 'a' }], nextCursor: 'more' });
    });
    const ids: string[] = [];
    for await (const { id } of clientOf(machine).each('listGoals', { state: 'active' })) ids.push(id);
    expect(ids).toEqual(['a', 'b']);
  });
});

describe('a stream', () => {
  const frame = (sequence: number, type = 'node.started'): string =>
    `id: ${sequence}\nevent: ${type}\ndata: ${JSON.stringify({ sequence, type })}\n\n`;
  const stream = (text: string): Response => new Response(text, { headers: { 'content-type': 'text/event-stream' } });

  /** Says something and breaks, as a connection does whose other end has died. */
  function broken(text: string): Response {
    let isSaid = false;
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          if (isSaid) controller.error(new Error('cut'));
          else controller.enqueue(new TextEncoder().encode(text));
          isSaid = true;
        },
      },
      { highWaterMark: 0 },
    );
    return new Response(body);
  }

  async function followed(machine: TestMachine): Promise<number[]> {
    const sequences: number[] = [];
    for await (const { sequence } of clientOf(machine).followRun('run-1')) sequences.push(sequence);
    return sequences;
  }

  it('continues after the last event when the connection breaks or the host closes it, and drops duplicates', async () => {
    const answers = [
      () => broken(frame(0)),
      () => stream(`${frame(0)}:keepalive\n\n${frame(1)}`),
      () => json({ status: 'running' }),
      () => json({ error: 'service_unavailable', message: 'm' }, 503),
      () => stream(`${frame(2)}event: run.annotated\ndata: {}\n\n${frame(3, 'run.completed')}`),
    ];
    const machine = new TestMachine((_asked, count) => answers[count - 1]!());
    expect(await followed(machine)).toEqual([0, 1, 2, 3]);
    expect(machine.requests.map(({ headers }) => headers.get('last-event-id'))).toEqual([null, '0', null, '1', '1']);
  });

  it('tells when it begins, but not when it is continued', async () => {
    const said: string[] = [];
    const answers = [
      () => json(HOST),
      () => new Response(broken(frame(1)).body, { headers: { 'last-event-id': '0' } }),
      () => json({ error: 'service_unavailable', message: 'm' }, 503),
      () => stream(frame(2)),
    ];
    const machine = new TestMachine((_asked, count) => answers[count - 1]!());
    for await (const { id } of clientOf(machine).followTenant({ onOpen: () => said.push('open') })) {
      said.push(id!);
      if (id === '2') break;
    }
    expect(said).toEqual(['open', '1', '2']);
  });

  it('of an ended run ends when it has no more messages', async () => {
    const machine = new TestMachine(({ url }) => (url.includes('/events') ? stream('') : json({ status: 'failed' })));
    expect(await followed(machine)).toEqual([]);
    expect(machine.requests).toHaveLength(3);
  });

  it('ends with a refusal, without a retry', async () => {
    const machine = new TestMachine(() => json({ error: 'not_found', message: 'm' }, 404));
    await expect(followed(machine)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('gives up on a host that is down for minutes', async () => {
    const machine = new TestMachine(() => {
      throw new TypeError('fetch failed');
    });
    await expect(followed(machine)).rejects.toBeInstanceOf(UnreachableError);
    expect(machine.pauses.reduce((sum, ms) => sum + ms)).toBeGreaterThan(200_000);
  });
});
