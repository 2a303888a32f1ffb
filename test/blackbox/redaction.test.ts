import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Answer, Api } from '../support/api.ts';
import { everythingAtRest } from '../support/at-rest.ts';
import { freshFolder, migratedDatabase } from '../support/database.ts';
import {
  edge,
  expression,
  fixed,
  line,
  node,
  register,
  unique,
  variable,
  WORKFLOWS,
  workflow,
} from '../support/definitions.ts';
import { expectEnvelope } from '../support/envelope.ts';
import { KEYS, startHostWith, type TestHost } from '../support/host.ts';
import { spawnHost } from '../support/process.ts';
import { STORES } from '../support/stores.ts';

/** core.md 3.4: what looks like a secret is never shown, never logged and never at rest. */

const MARKER = 'Zuckerhut';
/** Of a reference to a credential, which the run needs and only its snapshot may show. */
const REFERENCE = 'cred_Wellenreiter01';
const KEY_MARKER = 'Leuchtturm';

const CANARIES = {
  openai: `sk-${MARKER}0123456789abcdefghij`,
  anthropic: `sk-ant-api03-${MARKER}-0123456789abcdefghij`,
  google: `AIza${MARKER}0123456789abcdefghijklmno`,
  token: `eyJhbGciOiJIUzI1NiJ9.eyJ${MARKER}0123456789.${MARKER}abcdefghijklmnop`,
  reference: `cred_${MARKER}0123456789abcdefghij`,
  issued: `cred_${MARKER}-7`,
} as const;
const ALL = Object.values(CANARIES);

/** A canary in two halves, neither of which has the marker. */
const halves = (canary: string): [string, string] => {
  const middle = canary.indexOf(MARKER) + MARKER.length / 2;
  return [canary.slice(0, middle), canary.slice(middle)];
};
/** An expression that puts a canary together, from pieces that say nothing, only when it is evaluated. */
const assembled = (canary: string): string =>
  canary
    .match(/.{1,4}/g)!
    .map((piece) => JSON.stringify(piece))
    .join(' + ');

describe.each(STORES)('secrets, on %s', (kind) => {
  const folder = freshFolder();
  let databaseUrl: string | undefined;
  let host: Pick<TestHost, 'url' | 'as' | 'output'>;
  let stop: () => Promise<void>;
  /** Everything that the host answered, whatever it was asked. */
  const said: { readonly what: string; readonly answer: Answer }[] = [];
  const runs: { readonly api: Api; readonly runId: string }[] = [];

  beforeAll(async () => {
    databaseUrl = kind === 'postgres' ? await migratedDatabase(inject('postgresUrl')) : undefined;
    const environment = { CAPSTAN_DATA: folder.path, CAPSTAN_LOG: 'trace' };
    if (databaseUrl === undefined) await startProcess(environment);
    else await startHere({ ...environment, DATABASE_URL: databaseUrl });
    await sayEverything();
  });
  afterAll(async () => {
    await stop?.();
    folder.remove();
  });

  /** On one of the stores, all that a process prints is looked at, on the other its log. */
  async function startProcess(environment: Record<string, string>): Promise<void> {
    const started = await spawnHost(environment);
    host = started;
    stop = async () => {
      started.signal('SIGTERM');
      expect(await started.exit).toBe(0);
    };
  }

  async function startHere(environment: Record<string, string>): Promise<void> {
    const started = await startHostWith(environment);
    host = started;
    stop = started.stop;
  }

  const api = (): Api => host.as('editor');
  const keep = (what: string, answer: Answer): Answer => {
    said.push({ what, answer });
    return answer;
  };
  const start = async (what: string, body: object, by = api(), headers = {}): Promise<string> => {
    const answer = keep(what, await by.post('/v1/runs', body, headers));
    expect(answer.status, `${what}: ${answer.text}`).toBe(201);
    runs.push({ api: by, runId: answer.body.runId });
    return answer.body.runId;
  };

  /** Plants the canaries wherever a caller or a node can put text. */
  async function sayEverything(): Promise<void> {
    for (const canary of ALL) {
      await plantInRuns(canary);
      await plantInRefusals(canary);
    }
    await plantInNodes();
    await start('credential reference', {
      workflowId: 'conformance-noop',
      configurable: { ai: { credentialRef: REFERENCE } },
    });
    const key = { 'idempotency-key': `${KEY_MARKER}-${unique('key')}` };
    for (const _retry of [1, 2]) await start('idempotency key', { workflowId: 'conformance-noop' }, api(), key);
    for (const { api: by, runId } of runs) await by.ended(runId);
  }

  async function plantInRuns(canary: string): Promise<void> {
    const runId = await start('create', {
      workflowId: 'conformance-cancellable',
      inputs: { undeclared: canary, deep: [{ list: [canary] }], [canary]: 'key', sentence: `use ${canary} for it` },
      tags: [canary, `tag ${canary}`],
      metadata: { note: canary, [canary]: { deep: [canary] } },
      configurable: { 'acme.key': canary, model: canary, promptOverrides: { p: `say ${canary}` } },
      scopeId: canary,
      callbackUrl: `https://example.com/?key=${canary}`,
    });
    keep('pause', await api().post(`/v1/runs/${runId}:pause`, { reason: canary, drainPolicy: 'immediate' }));
    keep('pause again', await api().post(`/v1/runs/${runId}:pause`, { reason: canary }));
    keep('resume', await api().post(`/v1/runs/${runId}:resume`, { reason: `because ${canary}` }));
    keep('cancel', await api().post(`/v1/runs/${runId}/cancel`, { reason: canary }));
    const identity = { workflowId: 'conformance-identity', inputs: { payload: { key: canary } } };
    await start('identity', identity, api(), { 'idempotency-key': canary });
    keep('mismatch', await api().post('/v1/runs', { workflowId: canary }, { 'idempotency-key': canary }));
    const tag = encodeURIComponent(canary);
    for (const filter of ['tag', 'workflowId', 'status', 'cursor', 'since']) {
      keep(`list by ${filter}`, await api().get(`/v1/host/capstan/runs?${filter}=${tag}`));
    }
    const config = { tokens: ['say ', canary], model: canary };
    const mock = (id: string, given: object): object => ({
      workflowId: 'conformance-stream-text',
      configurable: { mockProvider: { id, config: given } },
    });
    await start('stream-text', mock('stream-text', config), host.as('test'));
    await start('error', mock('error', { code: 'x', message: `bad key ${canary}` }), host.as('test'));
    const toolCalls = [{ id: 'c', name: 'call', arguments: { key: canary } }];
    await start('tool-calls', mock('tool-calls', { toolCalls }), host.as('test'));
    keep('unknown mock', await host.as('test').post('/v1/runs', mock(canary, {})));
    keep('forbidden mock', await api().post('/v1/runs', mock(canary, {})));
  }

  async function plantInRefusals(canary: string): Promise<void> {
    const { runId } = runs[0]!;
    const path = encodeURIComponent(canary);
    const refused = async (what: string, asked: Promise<Answer>): Promise<void> => {
      const answer = keep(what, await asked);
      expectEnvelope(answer);
    };
    await refused('bearer', new Api(host.url, canary).post('/v1/runs', { workflowId: 'conformance-noop' }));
    await refused('unknown workflow', api().post('/v1/runs', { workflowId: canary }));
    await refused('unknown workflow by path', api().get(`/v1/workflows/${path}`));
    await refused('unknown run', api().get(`/v1/runs/${path}`));
    await refused('unknown run to cancel', api().post(`/v1/runs/${path}/cancel`, { reason: canary }));
    await refused('unknown artifact', api().get(`/v1/runs/${runId}/artifacts/${path}`));
    await refused('unknown route', api().get(`/v1/${path}`));
    await refused('unversioned route', api().get(`/${path}`));
    await refused('unknown key', api().post('/v1/runs', { workflowId: 'conformance-noop', [canary]: 1 }));
    await refused('wrong type', api().post('/v1/runs', { workflowId: [canary] }));
    await refused('wrong tenant', api().post('/v1/runs', { workflowId: 'conformance-noop', tenantId: canary }));
    await refused(
      'bad option',
      api().post('/v1/runs', { workflowId: 'conformance-noop', configurable: { temperature: canary } }),
    );
    await refused(
      'unknown provider',
      api().post('/v1/runs', { workflowId: 'conformance-noop', configurable: { ai: { provider: canary } } }),
    );
    await refused(
      'bad options by schema',
      api().post('/v1/runs', { workflowId: 'conformance-configurable-schema', configurable: { [canary]: canary } }),
    );
    await refused(
      'bad JSON',
      api().request('POST', '/v1/runs', `{"workflowId":"${canary}`, { 'content-type': 'application/json' }),
    );
    await refused(
      'bad media type',
      api().request('POST', '/v1/runs', canary, { 'content-type': canary.replaceAll('.', '-') }),
    );
    await refused('bad mode', api().get(`/v1/runs/${runId}/events?streamMode=${path}`));
    await refused('bad buffer', api().get(`/v1/runs/${runId}/events?bufferMs=${path}`));
    await refused('bad position', api().get(`/v1/runs/${runId}/events/poll?lastSequence=${path}`));
    await refused('bad filter', api().get(`/v1/host/capstan/runs?${path}=1`));
    await refused(
      'forced version',
      host.as('test').post('/v1/runs', { workflowId: 'conformance-noop' }, { 'x-force-engine-version': canary }),
    );
    const secretive = workflow([node('a', 'core.noop', { config: { [canary]: canary } })]);
    await refused('definition', api().post(WORKFLOWS, secretive));
    await refused('definition by id', api().post(WORKFLOWS, { ...workflow([node('a')]), id: canary }));
    await refused('definition by node', api().post(WORKFLOWS, workflow([node(canary), node(canary)])));
  }

  /** Nodes that put secrets together, or meet them in what they are given. */
  async function plantInNodes(): Promise<void> {
    const shows = (id: string, text: string): ReturnType<typeof node> =>
      node(id, 'core.identity', { inputs: { x: expression(text) }, artifactType: 'note' });
    const { openai, anthropic, google, token, reference } = CANARIES;
    const parent = workflow(
      [
        shows('a', assembled(openai)),
        shows('b', `{"deep": [${assembled(anthropic)}]}`),
        node('set', 'core.setVariable', { config: { name: 'v' }, inputs: { value: expression(assembled(google)) } }),
        node('write', 'core.channelWrite', {
          config: { channelName: 'c', reducer: 'append' },
          inputs: { value: expression(`"token " + ${assembled(token)}`) },
        }),
        node('format', 'core.openwop.data.string-format', {
          inputs: {
            template: fixed('{{ one }}{{ two }}'),
            one: fixed(halves(reference)[0]),
            two: fixed(halves(reference)[1]),
          },
        }),
        node('child', 'core.subWorkflow', {
          config: { workflowId: 'conformance-identity', inputMapping: { payload: 'payload' } },
        }),
        node('bad', 'core.identity', { inputs: { x: expression(`int(${assembled(openai)})`) } }),
        node('rescue'),
      ],
      [
        ...line('a', 'b', 'set', 'write', 'format', 'child', 'bad'),
        edge('bad', 'rescue', { triggerRule: 'any_failed' }),
      ],
    );
    const runId = await start('nodes', {
      workflowId: await register(api(), parent),
      inputs: { payload: { k: token } },
    });
    const snapshot = await api().ended(runId);
    for (const { runId: childId } of snapshot.childRuns ?? []) runs.push({ api: api(), runId: childId });
    const fails = workflow([node('bad', 'core.identity', { inputs: { x: variable('x') } })]);
    await start('inputs of a failing run', { workflowId: await register(api(), fails), inputs: { y: openai } });
  }

  async function readEverything(): Promise<{ what: string; text: string }[]> {
    const texts: { what: string; text: string }[] = [];
    for (const { api: by, runId } of runs) {
      texts.push({ what: 'snapshot', text: (await by.get(`/v1/runs/${runId}`)).text });
      const log = await by.get(`/v1/runs/${runId}/events`, { accept: 'application/json' });
      texts.push({ what: 'JSON', text: log.text });
      texts.push({ what: 'poll', text: (await by.get(`/v1/runs/${runId}/events/poll`)).text });
      for (const query of ['updates', 'values', 'messages', 'debug', 'debug&bufferMs=10']) {
        const { frames } = await by.frames(`/v1/runs/${runId}/events?streamMode=${query}`);
        texts.push({ what: query, text: JSON.stringify(frames) });
      }
      for (const { type, payload } of log.body.events) {
        if (type !== 'artifact.created') continue;
        const artifact = await by.get(`/v1/runs/${runId}/artifacts/${payload.artifactId}`);
        expect(artifact.status).toBe(200);
        texts.push({ what: 'artifact', text: artifact.text });
      }
    }
    for (const who of ['editor', 'test'] as const) {
      texts.push({ what: 'list', text: (await host.as(who).get('/v1/host/capstan/runs?limit=200')).text });
      texts.push({ what: 'workflows', text: (await host.as(who).get(`${WORKFLOWS}?limit=200`)).text });
    }
    texts.push({ what: 'metrics', text: (await host.as('editor').get('/metrics')).text });
    return texts;
  }

  it('are planted in many places', () => {
    expect(runs.length).toBeGreaterThan(25);
    expect(said.length).toBeGreaterThan(150);
  });

  it('are not in any answer to whoever sent them', () => {
    for (const { what, answer } of said) {
      expect(answer.text + JSON.stringify([...answer.headers]), what).not.toContain(MARKER);
    }
  });

  it('never make an answer fail', () => {
    for (const { what, answer } of said) expect(answer.status, `${what}: ${answer.text}`).toBeLessThan(500);
  });

  it('are not in snapshots, logs, polls, streams of any mode, artifacts, lists or metrics', async () => {
    for (const { what, text } of await readEverything()) expect(text, what).not.toContain(MARKER);
  });

  it('leave a mark where they were', async () => {
    const snapshot = (await api().get(`/v1/runs/${runs[0]!.runId}`)).body;
    expect(snapshot.inputs.undeclared).toBe('[REDACTED]');
    expect(snapshot.inputs.sentence).toBe('use [REDACTED] for it');
    expect(snapshot.tags).toEqual(['[REDACTED]', 'tag [REDACTED]']);
    const events = await api().events(runs[0]!.runId);
    expect(events.at(-1).payload.reason).toBe('[REDACTED]');
  });

  it('raw inputs are in no event, secret or not', async () => {
    const word = unique('harmless');
    const runId = await api().run('conformance-noop', { inputs: { word, list: [{ word }] }, metadata: { word } });
    await api().ended(runId);
    expect(JSON.stringify(await api().events(runId))).not.toContain(word);
  });

  it('a reference to a credential comes back on the snapshot alone', async () => {
    const { runId } = said.find(({ what }) => what === 'credential reference')!.answer.body;
    expect((await api().get(`/v1/runs/${runId}`)).body.configurable.ai.credentialRef).toBe(REFERENCE);
    expect((await api().get(`/v1/runs/${runId}/events/poll`)).text).not.toContain(REFERENCE);
    for (const mode of ['updates', 'messages', 'debug']) {
      const { frames } = await api().frames(`/v1/runs/${runId}/events?streamMode=${mode}`);
      expect(JSON.stringify(frames)).not.toContain(REFERENCE);
    }
    expect((await api().get('/v1/host/capstan/runs?limit=200')).text).not.toContain(REFERENCE);
  });

  it('what only looks a little like a secret is left alone', async () => {
    const inputs = {
      sentence: 'The risk-averse ask for a task-list.',
      id: 'conformance-noop',
      uuid: '7f9c24e8-3b12-4a6f-9c1d-1f2e3d4c5b6a',
      hash: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
      url: 'https://example.com/path?page=2&sort=asc',
      mail: 'somebody@example.com',
    };
    const snapshot = await api().ended(await api().run('conformance-noop', { inputs }));
    expect(snapshot.inputs).toEqual(inputs);
  });

  it('are not in what the host printed, and neither are keys of any kind', async () => {
    const output = host.output();
    expect(output.split('\n').length).toBeGreaterThan(100);
    for (const word of [MARKER, REFERENCE, KEY_MARKER]) expect(output).not.toContain(word);
    for (const { key } of Object.values(KEYS)) expect(output).not.toContain(key);
  });

  // Last: it ends the host.
  it('are nowhere at rest', async () => {
    await stop();
    const whole = await everythingAtRest(folder.path, databaseUrl);
    expect(whole.length).toBeGreaterThan(50_000);
    expect(whole.includes('conformance-identity')).toBe(true);
    for (const word of [MARKER, KEY_MARKER]) {
      const at = whole.indexOf(word);
      expect(at < 0 ? '' : whole.slice(Math.max(0, at - 200), at + 100)).toBe('');
    }
    expect(host.output()).not.toContain(MARKER);
  });
});

it('a bulk cancel with a key keeps no secret among the ids that it was asked about', async () => {
  const folder = freshFolder();
  const host = await startHostWith({ CAPSTAN_DATA: folder.path });
  try {
    const runIds = ALL.map((canary) => canary);
    const answer = await host
      .as('editor')
      .post('/v1/runs:bulk-cancel', { runIds }, { 'idempotency-key': unique('key') });
    expect(answer.status).toBe(200);
    await host.stop();
    expect((await everythingAtRest(folder.path, undefined)).includes(MARKER)).toBe(false);
  } finally {
    await host.stop();
    folder.remove();
  }
});
