import { connect } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api, Frame } from '../support/api.ts';
import { edge, fixed, line, node, register, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { onEachStore, STORES } from '../support/stores.ts';
import { Stream } from '../support/stream.ts';

/** core.md 2.11 to 2.14: the log, and every way to read it. */

type Event = Answer['body'];

const TERMINAL = ['run.completed', 'run.failed', 'run.cancelled'];
/** Sooner than a connection on which nothing was asked is closed anyway. */
const PROMPT_MS = 9_000;
const MODES = ['updates', 'values', 'messages', 'debug'];
/** Types that `updates` shows; all others are for `debug`, chunks also for `messages`. */
const UPDATES =
  /^(run\.(started|completed|failed|cancelled|paused|resumed|annotated)|node\.(completed|failed|skipped|suspended|resumed|cancelled|dispatched)|artifact\.created)$/;
const VENDOR = /^(?!(?:openwop|core|community|vendor|private|local)\.)[a-z][a-zA-Z0-9_-]*(\.[a-zA-Z0-9_-]+)+$/;
const dataOf = (frames: readonly Frame[]): Event[] => frames.map(({ data }) => JSON.parse(data!));
const idsOf = (frames: readonly Frame[]): number[] => frames.map(({ id }) => Number(id));

/** A definition that shows many types of events, waits in the middle and ends well. */
const eventful = () =>
  workflow(
    [
      node('set', 'core.setVariable', { config: { name: 'count', value: 1 } }),
      node('retry', 'core.fail', { settings: { retry: { maxRetries: 2, delayMs: 1 } } }),
      node('rescue'),
      node('write', 'core.channelWrite', { config: { channelName: 'notes', reducer: 'append', value: 'x' } }),
      node('make', 'core.identity', { inputs: { text: fixed('t') }, artifactType: 'note' }),
      node('skipped'),
      node('child', 'core.subWorkflow', { config: { workflowId: 'conformance-subworkflow-child' } }),
      node('wait', 'core.delay', { config: { ms: 60 } }),
      node('end'),
    ],
    [
      edge('set', 'retry'),
      edge('retry', 'rescue', { triggerRule: 'any_failed' }),
      edge('rescue', 'write'),
      edge('write', 'make'),
      edge('make', 'skipped', { condition: { type: 'equals', left: 'text', right: 'other' } }),
      edge('make', 'child'),
      edge('child', 'wait'),
      edge('wait', 'end'),
    ],
  );

onEachStore('the log', (host) => {
  const api = (): Api => host().as('editor');
  const finished = async (id: string, rest: object = {}): Promise<Event[]> => {
    const runId = await api().run(id, rest);
    await api().ended(runId);
    return api().events(runId);
  };

  it('has the required fields on every event', async () => {
    for (const event of await finished(await register(api(), eventful()))) {
      for (const name of ['eventId', 'runId', 'type', 'payload', 'timestamp', 'sequence']) {
        expect(event).toHaveProperty(name);
      }
      expect(event.eventId.length).toBeLessThanOrEqual(128);
      expect(new Date(event.timestamp).toISOString()).toBe(event.timestamp);
      expect(event.schemaVersion).toBe(1);
      expect(event.engineVersion).toBeTypeOf('string');
      expect(event).not.toHaveProperty('seq');
      expect(event).not.toHaveProperty('data');
    }
  });

  it('has ids that are unique across runs', async () => {
    const logs = await Promise.all(Array.from({ length: 10 }, () => finished('conformance-multi-node')));
    const ids = logs.flat().map(({ eventId }) => eventId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('has the node at the top of node events, and in their payload', async () => {
    const events = await finished(await register(api(), eventful()));
    const ofNodes = events.filter(({ type }) => /^node\.(?!dispatched)/.test(type));
    expect(ofNodes.length).toBeGreaterThan(10);
    for (const { nodeId, payload } of ofNodes) expect(payload.nodeId).toBe(nodeId);
    for (const { nodeId } of events.filter(({ type }) => type === 'node.dispatched')) expect(nodeId).toBe('child');
  });

  it('leaves a node id out of the envelope that is too long for it, and has it whole in the payload', async () => {
    const long = 'n'.repeat(129);
    const limit = 'm'.repeat(128);
    const events = await finished(await register(api(), workflow([node(long), node(limit)])));
    const completed = events.filter(({ type }) => type === 'node.completed');
    expect(completed.map(({ payload }) => payload.nodeId).sort()).toEqual([limit, long]);
    for (const event of completed) {
      if (event.payload.nodeId === long) expect(event).not.toHaveProperty('nodeId');
      else expect(event.nodeId).toBe(limit);
    }
  });

  it('uses registered types, or types of its own under a vendor prefix', async () => {
    const runId = await api().run('conformance-cancellable');
    await api().until(runId, (snapshot) => JSON.stringify(snapshot).includes('"wait"'));
    await api().post(`/v1/runs/${runId}:pause`);
    await api().post(`/v1/runs/${runId}/cancel`);
    const events = [...(await api().events(runId)), ...(await finished(await register(api(), eventful())))];
    const own =
      /^(run|node|approval|clarification|cap|channel|replay|interrupt|variable|log|output|artifact|version)\./;
    for (const { type } of events) expect(type, type).toMatch(own.test(type) ? own : VENDOR);
  });

  it('starts at 0 with run.started and counts on without gaps', async () => {
    for (const id of ['conformance-noop', 'conformance-failure', await register(api(), eventful())]) {
      const events = await finished(id);
      expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
      expect(events[0].type).toBe('run.started');
      expect(events.filter(({ type }) => type === 'run.started')).toHaveLength(1);
    }
  });

  it('has exactly one end, and it is last', async () => {
    for (const id of ['conformance-noop', 'conformance-failure', await register(api(), eventful())]) {
      const types = (await finished(id)).map(({ type }) => type);
      expect(types.filter((type) => TERMINAL.includes(type))).toEqual([types.at(-1)]);
    }
  });

  it('reads the same every time and in every form', async () => {
    const events = await finished(await register(api(), eventful()));
    const { runId } = events[0];
    const polled = (await api().get(`/v1/runs/${runId}/events/poll`)).body.events;
    const streamed = dataOf((await api().frames(`/v1/runs/${runId}/events?streamMode=debug`)).frames);
    expect(polled).toEqual(events);
    expect(streamed).toEqual(events);
    expect(await api().events(runId)).toEqual(events);
  });

  it('belongs to one run: the events of a child are in the log of the child', async () => {
    const events = await finished('conformance-subworkflow-parent');
    expect(new Set(events.map(({ runId }) => runId)).size).toBe(1);
    const { childRunId } = events.find(({ type }) => type === 'node.dispatched')!.payload;
    const types = (await api().events(childRunId)).map(({ type }) => type);
    expect([types[0], types.at(-1)]).toEqual(['run.started', 'run.completed']);
  });

  it('has timestamps that never go back', async () => {
    const times = (await finished(await register(api(), eventful()))).map(({ timestamp }) => Date.parse(timestamp));
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  it('says nothing about measured durations', async () => {
    for (const { payload } of await finished(await register(api(), eventful()))) {
      expect(payload).not.toHaveProperty('durationMs');
    }
  });
});

onEachStore('streams', (host) => {
  const api = (): Api => host().as('editor');
  const path = (runId: string, query = ''): string => `/v1/runs/${runId}/events${query}`;
  let definitionId: string;
  let doneId: string;
  beforeAll(async () => {
    definitionId = await register(api(), eventful());
    doneId = await api().run(definitionId);
    await api().ended(doneId);
  });

  it('are event streams that nobody should buffer or keep', async () => {
    const response = await fetch(host().url + path(doneId), {
      headers: { authorization: `Bearer ${KEYS.editor.key}` },
    });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream\b/);
    expect(response.headers.get('cache-control')).toContain('no-cache');
    await response.text();
  });

  it('frame each event with its sequence, its type and its document on one line', async () => {
    const response = await fetch(host().url + path(doneId, '?streamMode=debug'), {
      headers: { authorization: `Bearer ${KEYS.editor.key}` },
    });
    const events = await api().events(doneId);
    const expected = events.map(
      (event) => `id: ${event.sequence}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`,
    );
    expect(await response.text()).toBe(`:\nretry: 1000\n\n${expected.join('')}`);
  });

  it.each(['', '?streamMode=updates'])('in mode updates show transitions and nothing else ("%s")', async (query) => {
    const { frames, isEnded, status } = await api().frames(path(doneId, query));
    expect({ isEnded, status }).toEqual({ isEnded: true, status: 200 });
    const expected = (await api().events(doneId)).filter(({ type }) => UPDATES.test(type));
    expect(dataOf(frames)).toEqual(expected);
    expect(frames.map(({ event }) => event)).toEqual(expected.map(({ type }) => type));
    expect(idsOf(frames)).toEqual(expected.map(({ sequence }) => sequence));
    expect(frames[0]!.event).toBe('run.started');
    expect(frames.at(-1)!.event).toBe('run.completed');
  });

  it('in mode updates show resumptions and cancelled nodes too', async () => {
    const runId = await api().run('conformance-cancellable');
    await api().until(runId, (snapshot) => JSON.stringify(snapshot).includes('"wait"'));
    await api().post(`/v1/runs/${runId}:pause`, { drainPolicy: 'immediate' });
    await api().post(`/v1/runs/${runId}:resume`);
    await api().until(runId, (snapshot) => JSON.stringify(snapshot).includes('"attempt":1'));
    await api().post(`/v1/runs/${runId}/cancel`);
    const { frames } = await api().frames(path(runId));
    expect(frames.map(({ event }) => event)).toEqual([
      'run.started',
      'run.paused',
      'run.resumed',
      'node.cancelled',
      'run.cancelled',
    ]);
  });

  it('in mode debug show everything, and more than updates', async () => {
    const debug = (await api().frames(path(doneId, '?streamMode=debug'))).frames;
    const updates = (await api().frames(path(doneId))).frames;
    expect(dataOf(debug)).toEqual(await api().events(doneId));
    expect(debug.length).toBeGreaterThan(updates.length);
  });

  it('in mode values show a snapshot after each transition, the last of which is the end', async () => {
    const { frames, isEnded } = await api().frames(path(doneId, '?streamMode=values'));
    expect(isEnded).toBe(true);
    expect(new Set(frames.map(({ event }) => event))).toEqual(new Set(['state.snapshot']));
    const updates = (await api().frames(path(doneId))).frames;
    expect(frames.length).toBeGreaterThanOrEqual(updates.length);
    expect(idsOf(frames)).toEqual(expect.arrayContaining(idsOf(updates)));
    const snapshots = dataOf(frames);
    for (const snapshot of snapshots) expect(snapshot).toMatchObject({ runId: doneId, workflowId: definitionId });
    expect(snapshots.map(({ status }) => status)).toEqual([
      ...Array.from({ length: snapshots.length - 1 }, () => 'running'),
      'completed',
    ]);
    const { childRuns: _children, ...final } = (await api().get(`/v1/runs/${doneId}`)).body;
    expect(snapshots.at(-1)).toMatchObject(final);
  });

  it('in mode values show what was true then, not what is true now', async () => {
    const { frames } = await api().frames(path(doneId, '?streamMode=values'));
    const [first] = dataOf(frames);
    expect(first.variables).toEqual({});
    expect(first).not.toHaveProperty('completedAt');
    const isSet = dataOf(frames).map(({ variables }) => variables.count === 1);
    expect(isSet).toEqual(isSet.toSorted((a, b) => Number(a) - Number(b)));
    expect(isSet.at(-1)).toBe(true);
  });

  it('in mode messages are empty for a run without a model, and close', async () => {
    const { frames, isEnded, status } = await api().frames(path(doneId, '?streamMode=messages'));
    expect({ frames, isEnded, status }).toEqual({ frames: [], isEnded: true, status: 200 });
  });

  it('in mode messages show the tokens of a model, in order, and close', async () => {
    const tokens = ['One', ' two', ' three'];
    const configurable = { mockProvider: { id: 'stream-text', config: { tokens, delayMsPerToken: 10 } } };
    const runId = await host().as('test').run('conformance-stream-text', { configurable });
    const { frames, isEnded } = await host().as('test').frames(path(runId, '?streamMode=messages'));
    expect(isEnded).toBe(true);
    expect(new Set(frames.map(({ event }) => event))).toEqual(new Set(['ai.message.chunk']));
    const chunks = dataOf(frames);
    expect(chunks.map(({ chunk }) => chunk)).toEqual(tokens);
    expect(chunks.map(({ isLast }) => isLast)).toEqual([false, false, true]);
    expect(chunks.at(-1).meta).toMatchObject({ finishReason: 'stop', usage: { completionTokens: 3 } });
    for (const [index, chunk] of chunks.entries()) {
      expect(chunk).toMatchObject({ nodeId: 'ai', runId, type: 'output.chunk', sequence: Number(frames[index]!.id) });
      expect(chunk.payload).toMatchObject({ chunk: chunk.chunk, isLast: chunk.isLast });
    }
  });

  describe('in several modes', () => {
    it('show the union, in the order of the log, under the event types', async () => {
      const configurable = { mockProvider: { id: 'stream-text' } };
      const runId = await host().as('test').run('conformance-stream-text', { configurable });
      const { frames, isEnded } = await host().as('test').frames(path(runId, '?streamMode=updates,messages'));
      expect(isEnded).toBe(true);
      expect(frames.map(({ event }) => event)).toEqual([
        'run.started',
        'output.chunk',
        'output.chunk',
        'node.completed',
        'run.completed',
      ]);
      expect(idsOf(frames)).toEqual(idsOf(frames).toSorted((a, b) => a - b));
    });

    it.each(['updates,messages', 'messages,updates', 'updates,debug', 'debug,messages,updates', 'updates,%20debug'])(
      'accept %s',
      async (mode) => {
        const { frames, status } = await api().frames(path(doneId, `?streamMode=${mode}`));
        expect(status).toBe(200);
        expect(frames.at(-1)!.event).toBe('run.completed');
        const sequences = idsOf(frames);
        expect(new Set(sequences).size).toBe(sequences.length);
        const updates = idsOf((await api().frames(path(doneId))).frames);
        expect(sequences).toEqual(expect.arrayContaining(updates));
      },
    );
  });

  it.each([
    'bogus',
    'Updates',
    '',
    'updates,',
    'updates,bogus',
    'values,updates',
    'updates,values',
    'values,debug',
    'values,values',
    'updates;debug',
  ])('of mode "%s" are refused as JSON, whatever is accepted', async (mode) => {
    for (const accept of ['text/event-stream', 'application/json', '*/*']) {
      const answer = await api().get(path(doneId, `?streamMode=${encodeURIComponent(mode)}`), { accept });
      expectRefusal(answer, 400, 'unsupported_stream_mode');
      expect([...answer.body.details.supported].sort()).toEqual(MODES.toSorted());
    }
  });

  it.each(['99999', '5001', '-1', '1.5', 'abc', '', '1e3', '0x10', '99999999999999999999'])(
    'with bufferMs=%s are refused as JSON, whatever is accepted',
    async (bufferMs) => {
      for (const accept of ['text/event-stream', 'application/json']) {
        const answer = await api().get(path(doneId, `?bufferMs=${bufferMs}`), { accept });
        expectRefusal(answer, 400, 'validation_error');
      }
    },
  );

  it('ask first who is there, then for the run, then for the mode, then for the buffer', async () => {
    const wrong = '?streamMode=bogus&bufferMs=-1';
    expectRefusal(await host().anonymous.get(path(doneId, wrong)), 401, 'unauthenticated');
    expectRefusal(await host().as('nothing').get(path(doneId, wrong)), 403, 'forbidden');
    expectRefusal(await api().get(path('run-absent', wrong)), 404, 'not_found');
    expectRefusal(await api().get(path(doneId, wrong)), 400, 'unsupported_stream_mode');
    expectRefusal(await api().get(path(doneId, '?bufferMs=-1')), 400, 'validation_error');
  });

  it.each([
    [undefined, 'text/event-stream'],
    ['*/*', 'text/event-stream'],
    ['text/event-stream', 'text/event-stream'],
    ['text/event-stream, application/json', 'text/event-stream'],
    ['application/json, text/event-stream;q=0.5', 'text/event-stream'],
    ['text/html', 'text/event-stream'],
    ['application/json', 'application/json'],
    ['application/json; charset=utf-8', 'application/json'],
  ])('for Accept %s are %s', async (accept, type) => {
    const headers = { authorization: `Bearer ${KEYS.editor.key}`, ...(accept ? { accept } : {}) };
    const response = await fetch(host().url + path(doneId), { headers });
    expect(response.headers.get('content-type')?.split(';')[0]).toBe(type);
    await response.text();
  });

  it('as JSON are the whole log, whatever the mode', async () => {
    const events = (await api().get(`/v1/runs/${doneId}/events/poll`)).body.events;
    for (const query of ['', '?streamMode=updates', '?streamMode=messages', '?bufferMs=100']) {
      const answer = await api().get(path(doneId, query), { accept: 'application/json', 'last-event-id': '3' });
      expect(answer.status).toBe(200);
      expect(answer.body).toEqual({ events });
    }
  });

  it('as JSON of a run that is still going answer at once', async () => {
    const runId = await api().run('conformance-cancellable');
    const events = await api().events(runId);
    expect(events[0].type).toBe('run.started');
    await api().post(`/v1/runs/${runId}/cancel`);
  });

  it('take a parameter that they do not know', async () => {
    expect((await api().frames(path(doneId, '?a2uiDelta=1&surprise=2'))).status).toBe(200);
  });

  describe('with a buffer', () => {
    const eventsOf = (frames: readonly Frame[]): Event[] => dataOf(frames).flat();

    it('gather events into batches that carry the highest sequence', async () => {
      const runId = await api().run('conformance-delay', { inputs: { delayMs: 250 } });
      const { frames, isEnded } = await api().frames(path(runId, '?bufferMs=100'));
      expect(isEnded).toBe(true);
      expect(frames.length).toBeGreaterThanOrEqual(1);
      for (const frame of frames) {
        expect(frame.event).toBe('batch');
        const batch = JSON.parse(frame.data!);
        expect(batch.length).toBeGreaterThan(0);
        for (const { sequence, type } of batch) expect([typeof sequence, typeof type]).toEqual(['number', 'string']);
        expect(Number(frame.id)).toBe(Math.max(...batch.map(({ sequence }: Event) => sequence)));
      }
      expect(eventsOf(frames)).toEqual((await api().events(runId)).filter(({ type }) => UPDATES.test(type)));
    });

    it('flush the end at once, however long they may gather', async () => {
      const startedAt = Date.now();
      const runId = await api().run('conformance-delay', { inputs: { delayMs: 50 } });
      const { frames } = await api().frames(path(runId, '?bufferMs=5000'));
      expect(eventsOf(frames).at(-1).type).toBe('run.completed');
      expect(Date.now() - startedAt).toBeLessThan(5_000);
    });

    it('of zero do not batch', async () => {
      const { frames } = await api().frames(path(doneId, '?bufferMs=0'));
      expect(frames.map(({ event }) => event)).not.toContain('batch');
      expect(frames.at(-1)!.event).toBe('run.completed');
    });

    it('work in every mode that has events', async () => {
      const log = await api().events(doneId);
      for (const [mode, expected] of [
        ['debug', log],
        ['updates,messages', log.filter(({ type }) => UPDATES.test(type))],
        ['messages', []],
      ] as const) {
        const { frames, isEnded } = await api().frames(path(doneId, `?streamMode=${mode}&bufferMs=5000`));
        expect(isEnded).toBe(true);
        expect(eventsOf(frames)).toEqual(expected);
      }
    });

    it('resume after the last batch without gap or repeat', async () => {
      const updates = (await api().events(doneId)).filter(({ type }) => UPDATES.test(type));
      for (const [index, { sequence }] of updates.entries()) {
        const headers = { 'last-event-id': String(sequence) };
        const { frames } = await api().frames(path(doneId, '?bufferMs=50'), headers);
        expect(eventsOf(frames)).toEqual(updates.slice(index + 1));
      }
    });
  });

  describe('that resume', () => {
    it.each(['updates', 'debug', 'messages,debug'])('in mode %s go on after any event', async (mode) => {
      const whole = (await api().frames(path(doneId, `?streamMode=${mode}`))).frames;
      const last = (await api().events(doneId)).at(-1).sequence;
      for (let after = 0; after <= last; after++) {
        const headers = { 'last-event-id': String(after) };
        const { status, frames, isEnded } = await api().frames(path(doneId, `?streamMode=${mode}`), headers);
        expect({ status, isEnded }).toEqual({ status: 200, isEnded: true });
        expect(frames).toEqual(whole.filter(({ id }) => Number(id) > after));
      }
    });

    it.each(['updates', 'values', 'messages', 'debug', 'updates,messages'])(
      'in mode %s at the end are 200 and close with nothing new',
      async (mode) => {
        const last = (await api().events(doneId)).at(-1).sequence;
        for (const buffer of ['', '&bufferMs=1000']) {
          const answer = await api().frames(path(doneId, `?streamMode=${mode}${buffer}`), {
            'last-event-id': String(last),
          });
          expect(answer).toEqual({ status: 200, frames: [], isEnded: true });
        }
      },
    );

    it('beyond the end of a finished run are 200 and close', async () => {
      const answer = await api().frames(path(doneId), { 'last-event-id': '99999' });
      expect(answer).toEqual({ status: 200, frames: [], isEnded: true });
    });

    it('in mode values begin with a snapshot of where they left off', async () => {
      const whole = (await api().frames(path(doneId, '?streamMode=values'))).frames;
      for (const [index, { id, data }] of whole.slice(0, -1).entries()) {
        const { frames } = await api().frames(path(doneId, '?streamMode=values'), { 'last-event-id': id! });
        expect(JSON.parse(frames[0]!.data!)).toEqual(JSON.parse(data!));
        expect(frames.slice(1)).toEqual(whole.slice(index + 1));
      }
    });

    it('again and again at random points, on finished runs, see every event once', async () => {
      const whole = (await api().frames(path(doneId, '?streamMode=debug'))).frames;
      const cuts = fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 10 });
      await fc.assert(
        fc.asyncProperty(cuts, async (lengths) => {
          const seen: Frame[] = [];
          for (const length of [...lengths, Number.POSITIVE_INFINITY]) {
            const headers: Record<string, string> = seen.length > 0 ? { 'last-event-id': seen.at(-1)!.id! } : {};
            const stream = await Stream.open(host().url + path(doneId, '?streamMode=debug'), KEYS.editor.key, headers);
            await stream.until((frames) => frames.length >= length);
            stream.drop();
            seen.push(...stream.frames.slice(0, length));
          }
          expect(seen).toEqual(whole);
        }),
        { numRuns: 25 },
      );
    });

    it('again and again at random points, on running runs, see every event once', async () => {
      const steps = Array.from({ length: 12 }, (_, index) => `s${index}`);
      const slow = workflow(
        steps.map((id) => node(id, 'core.delay', { config: { ms: 4 } })),
        line(...steps),
      );
      const id = await register(api(), slow);
      const cuts = fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 2, maxLength: 12 });
      await fc.assert(
        fc.asyncProperty(cuts, fc.constantFrom('debug', 'updates'), async (lengths, mode) => {
          const runId = await api().run(id);
          const seen: Frame[] = [];
          for (const length of [...lengths, Number.POSITIVE_INFINITY]) {
            const headers: Record<string, string> = seen.length > 0 ? { 'last-event-id': seen.at(-1)!.id! } : {};
            const stream = await Stream.open(host().url + path(runId, `?streamMode=${mode}`), KEYS.editor.key, headers);
            await stream.until((frames) => frames.length >= length);
            stream.drop();
            seen.push(...stream.frames.slice(0, length));
          }
          expect(seen).toEqual((await api().frames(path(runId, `?streamMode=${mode}`))).frames);
        }),
        { numRuns: 15 },
      );
    });

    it.each(['abc', '-1', '1.5', '9'.repeat(30), '1 2'])(
      'after an id that no host gave out ("%s") are refused, or begin at the start',
      async (id) => {
        const response = await fetch(host().url + path(doneId), {
          headers: { authorization: `Bearer ${KEYS.editor.key}`, 'last-event-id': id },
        });
        expect([200, 400]).toContain(response.status);
        const text = await response.text();
        if (response.status === 400)
          expect(Object.keys(JSON.parse(text)).sort()).toEqual(['details', 'error', 'message']);
        else expect(text).toContain('event: run.started');
      },
    );
  });

  describe('of running runs', () => {
    it('show the backlog first, then each event as it comes, then close', async () => {
      const runId = await api().run('conformance-cancellable');
      await api().until(runId, (snapshot) => JSON.stringify(snapshot).includes('"wait"'));
      const stream = await Stream.open(host().url + path(runId, '?streamMode=debug'), KEYS.editor.key);
      await stream.until((frames) => frames.length >= 2);
      expect(stream.frames.map(({ event }) => event)).toEqual(['run.started', 'node.started']);
      await api().post(`/v1/runs/${runId}:pause`, { drainPolicy: 'immediate' });
      await stream.until((frames) => frames.length >= 3);
      expect(stream.frames.at(-1)!.event).toBe('run.paused');
      await api().post(`/v1/runs/${runId}:resume`);
      await stream.until((frames) => frames.some(({ data }) => data!.includes('"attempt":1')));
      await api().post(`/v1/runs/${runId}/cancel`);
      await stream.ended();
      expect(stream.isComplete).toBe(true);
      expect(dataOf(stream.frames)).toEqual(await api().events(runId));
    });

    it('opened right after the start always close', async () => {
      const rounds = Array.from({ length: 60 }, async () => {
        const runId = await api().run('conformance-noop');
        const { frames, isEnded } = await api().frames(path(runId, '?streamMode=debug'));
        expect(isEnded).toBe(true);
        expect(frames.map(({ event }) => event)).toEqual([
          'run.started',
          'node.started',
          'node.completed',
          'run.completed',
        ]);
      });
      await Promise.all(rounds);
    });

    it('in mode values go on with the run', async () => {
      const runId = await api().run('conformance-delay', { inputs: { delayMs: 50 } });
      const { frames, isEnded } = await api().frames(path(runId, '?streamMode=values'));
      expect(isEnded).toBe(true);
      expect(dataOf(frames).map(({ status }) => status)).toEqual(['running', 'running', 'completed']);
    });

    it('a hundred at once each see every event once, in order, and close', async () => {
      const definition = workflow(
        [...'abcdef'].map((id) => node(id, 'core.delay', { config: { ms: 15 } })),
        line(...'abcdef'),
      );
      const id = await register(api(), definition);
      const runs = await Promise.all(Array.from({ length: 10 }, () => api().run(id)));
      const streams = runs.flatMap((runId) =>
        Array.from({ length: 10 }, (_, index) => {
          const mode = ['debug', 'updates', 'updates,messages', 'values', 'debug'][index % 5]!;
          return { runId, mode, opened: Stream.open(host().url + path(runId, `?streamMode=${mode}`), KEYS.editor.key) };
        }),
      );
      expect(streams).toHaveLength(100);
      for (const { runId, mode, opened } of streams) {
        const stream = await opened;
        await stream.ended();
        expect(stream.isComplete).toBe(true);
        const log = await api().events(runId);
        const shown = mode === 'debug' ? log : log.filter(({ type }) => UPDATES.test(type));
        expect(idsOf(stream.frames)).toEqual(shown.map(({ sequence }) => sequence));
        if (mode !== 'values') expect(dataOf(stream.frames)).toEqual(shown);
      }
    });

    it('wait for a reader that takes its time, and lose nothing', async () => {
      const names = Array.from({ length: 400 }, (_, index) => `n${index}`);
      const filler = 'x'.repeat(1_000);
      const definition = workflow(
        names.map((name) => node(name, 'core.identity', { inputs: { text: fixed(filler) } })),
        line(...names),
      );
      const runId = await api().run(await register(api(), definition));
      const stream = await Stream.open(host().url + path(runId, '?streamMode=debug'), KEYS.editor.key);
      stream.pause();
      await api().ended(runId);
      stream.resume();
      await stream.ended();
      expect(stream.isComplete).toBe(true);
      expect(idsOf(stream.frames)).toEqual((await api().events(runId)).map(({ sequence }) => sequence));
    });

    it('of other tenants are not there', async () => {
      const runId = await api().run('conformance-noop');
      expectRefusal(await host().as('other').get(path(runId)), 404, 'not_found');
    });
  });

  it('that resume beyond the end of a running run close when it ends', async () => {
    const runId = await api().run('conformance-delay', { inputs: { delayMs: 50 } });
    const headers = { 'last-event-id': '99999' };
    const stream = await Stream.open(host().url + path(runId), KEYS.editor.key, headers);
    await api().ended(runId);
    // A second stream of the same kind, opened after the end, shows how long closing takes.
    await api().frames(path(runId), headers);
    const isClosed = Promise.race([stream.ended().then(() => true), later(20_000).then(() => false)]);
    expect(await isClosed).toBe(true);
    stream.drop();
    expect(stream.frames).toEqual([]);
  });
});

/** Only for what must not take so long. */
function later(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

onEachStore('polling', (host) => {
  const api = (): Api => host().as('editor');
  const poll = (runId: string, query = ''): Promise<Answer> => api().get(`/v1/runs/${runId}/events/poll${query}`);

  it('without parameters gives the log from the first event, and both spellings of its state', async () => {
    const runId = await api().run('conformance-noop');
    await api().ended(runId);
    const { status, body } = await poll(runId);
    expect(status).toBe(200);
    const { events, ...rest } = body;
    expect(events.map(({ sequence }: Event) => sequence)).toEqual([0, 1, 2, 3]);
    expect(rest).toEqual({ runId, isComplete: true, lastEventSeq: 3, runStatus: 'completed', isTerminal: true });
    expect((await poll(runId)).body).toEqual(body);
  });

  it('gives what comes after the cursor', async () => {
    const runId = await api().run('conformance-multi-node');
    await api().ended(runId);
    const events = await api().events(runId);
    for (const name of ['lastSequence', 'since']) {
      for (const { sequence } of events) {
        const { body } = await poll(runId, `?${name}=${sequence}`);
        expect(body.events).toEqual(events.slice(sequence + 1));
        expect(body.isComplete).toBe(true);
      }
    }
  });

  it('shows all types, as debug does', async () => {
    const runId = await api().run('conformance-channel-ttl');
    await api().ended(runId);
    const types = (await poll(runId)).body.events.map(({ type }: Event) => type);
    expect(types).toEqual(expect.arrayContaining(['node.started', 'channel.written']));
  });

  it('past the end is 200 with nothing, at once when the run is over', async () => {
    const runId = await api().run('conformance-noop');
    await api().ended(runId);
    for (const cursor of [3, 4, 99_999, Number.MAX_SAFE_INTEGER]) {
      const { status, body } = await poll(runId, `?lastSequence=${cursor}&timeout=60`);
      expect(status).toBe(200);
      expect(body).toMatchObject({ events: [], isComplete: true, isTerminal: true, lastEventSeq: cursor });
    }
  });

  it.each([
    'lastSequence=-1',
    'lastSequence=1.5',
    'lastSequence=abc',
    'lastSequence=',
    'lastSequence=1&lastSequence=2',
  ])('with %s is 400', async (query) => {
    expectRefusal(await poll(await api().run('conformance-noop'), `?${query}`), 400, 'validation_error');
  });

  it.each(['timeout=0', 'timeout=61', 'timeout=-1', 'timeout=abc', 'timeout=0.5', 'timeout='])(
    'with %s is 400',
    async (query) => {
      expectRefusal(await poll(await api().run('conformance-noop'), `?${query}`), 400, 'validation_error');
    },
  );

  it('of an unknown run is 404, also with a bad cursor', async () => {
    expectRefusal(await poll('run-absent'), 404, 'not_found');
    expectRefusal(await poll('run-absent', '?lastSequence=abc'), 404, 'not_found');
  });

  it('answers at once when there is something new', async () => {
    const runId = await api().run('conformance-cancellable');
    const startedAt = Date.now();
    const { body } = await poll(runId, '?timeout=60');
    expect(body.events[0].type).toBe('run.started');
    expect(body).toMatchObject({ isComplete: false, isTerminal: false, runStatus: 'running' });
    expect(Date.now() - startedAt).toBeLessThan(30_000);
    await api().post(`/v1/runs/${runId}/cancel`);
  });

  it('waits for something new, and answers as soon as it is there', async () => {
    const runId = await api().run('conformance-cancellable');
    await api().until(runId, (snapshot) => JSON.stringify(snapshot).includes('"wait"'));
    const last = (await api().events(runId)).at(-1).sequence;
    const waiting = poll(runId, `?lastSequence=${last}&timeout=60`);
    await api().post(`/v1/runs/${runId}/cancel`);
    const { body } = await waiting;
    expect(body.events.map(({ type }: Event) => type)).toEqual(['node.cancelled', 'run.cancelled']);
    expect(body).toMatchObject({ isComplete: true, isTerminal: true, runStatus: 'cancelled' });
  });

  it('gives up after the time it was given, with an empty list', async () => {
    const runId = await api().run('conformance-cancellable');
    await api().until(runId, (snapshot) => JSON.stringify(snapshot).includes('"wait"'));
    const last = (await api().events(runId)).at(-1).sequence;
    const startedAt = Date.now();
    const { status, body } = await poll(runId, `?lastSequence=${last}&timeout=1`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ events: [], isComplete: false, isTerminal: false, lastEventSeq: last });
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(950);
    expect(Date.now() - startedAt).toBeLessThan(20_000);
    await api().post(`/v1/runs/${runId}/cancel`);
  });

  it('is complete only when the page reaches the end of the log', async () => {
    const names = Array.from({ length: 700 }, (_, index) => `n${index}`);
    const runId = await api().run(
      await register(
        api(),
        workflow(
          names.map((id) => node(id)),
          line(...names),
        ),
      ),
    );
    await api().ended(runId);
    const seen: Event[] = [];
    for (let isComplete = false; !isComplete; ) {
      const cursor = seen.length === 0 ? '' : `&lastSequence=${seen.at(-1).sequence}`;
      const { body } = await poll(runId, `?timeout=1${cursor}`);
      expect(body.events.length).toBeGreaterThan(0);
      expect(body.isTerminal).toBe(true);
      expect(body.lastEventSeq).toBe(body.events.at(-1).sequence);
      seen.push(...body.events);
      isComplete = body.isComplete;
    }
    expect(seen).toEqual(await api().events(runId));
    expect(seen.at(-1).type).toBe('run.completed');
  });

  it('by many at once, while the run goes on, adds up to the log for each', async () => {
    const definition = workflow(
      [...'abcdef'].map((id) => node(id, 'core.delay', { config: { ms: 10 } })),
      line(...'abcdef'),
    );
    const runId = await api().run(await register(api(), definition));
    const logs = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const seen: Event[] = [];
        for (let isComplete = false; !isComplete; ) {
          const cursor = seen.length === 0 ? '' : `&lastSequence=${seen.at(-1).sequence}`;
          const { body } = await poll(runId, `?timeout=10${cursor}`);
          seen.push(...body.events);
          isComplete = body.isComplete;
        }
        return seen;
      }),
    );
    const log = await api().events(runId);
    for (const seen of logs) expect(seen).toEqual(log);
  });
});

describe('two hosts on one PostgreSQL', () => {
  let one: TestHost;
  let two: TestHost;
  beforeAll(async () => {
    one = await startTestHost('postgres', inject('postgresUrl'));
    two = await one.another();
  });
  afterAll(async () => {
    await two.stop();
    await one.stop();
  });

  it('stream what the other one runs: every event once, in order, to the end', async () => {
    const definition = workflow(
      [...'abcdef'].map((id) => node(id, 'core.delay', { config: { ms: 15 } })),
      line(...'abcdef'),
    );
    const id = await register(one.as('editor'), definition);
    const rounds = Array.from({ length: 12 }, async (_, index) => {
      const [runs, reads] = index % 2 === 0 ? [one, two] : [two, one];
      const runId = await runs.as('editor').run(id);
      const { frames, isEnded } = await reads.as('editor').frames(`/v1/runs/${runId}/events?streamMode=debug`);
      expect(isEnded).toBe(true);
      expect(dataOf(frames)).toEqual(await runs.as('editor').events(runId));
    });
    await Promise.all(rounds);
  });

  it('poll what the other one runs, without waiting for the timeout', async () => {
    const runId = await one.as('editor').run('conformance-cancellable');
    await two.as('editor').until(runId, (snapshot) => JSON.stringify(snapshot).includes('"wait"'));
    const last = (await two.as('editor').events(runId)).at(-1).sequence;
    const waiting = two.as('editor').get(`/v1/runs/${runId}/events/poll?lastSequence=${last}&timeout=60`);
    await one.as('editor').post(`/v1/runs/${runId}/cancel`);
    expect((await waiting).body.events.at(-1).type).toBe('run.cancelled');
  });

  it('end a run once, though both are asked to', async () => {
    const rounds = Array.from({ length: 15 }, async () => {
      const runId = await one.as('editor').run('conformance-cancellable');
      const answers = await Promise.all([one, two].map((host) => host.as('editor').post(`/v1/runs/${runId}/cancel`)));
      expect(answers.map(({ status, body }) => [status, body.status])).toEqual([
        [200, 'cancelled'],
        [200, 'cancelled'],
      ]);
      const events = await one.as('editor').events(runId);
      expect(events.filter(({ type }) => type === 'run.cancelled')).toHaveLength(1);
    });
    await Promise.all(rounds);
  });

  it('steer what the other one runs', async () => {
    const runId = await one.as('editor').run('conformance-cancellable');
    expect((await two.as('editor').post(`/v1/runs/${runId}:pause`, { drainPolicy: 'immediate' })).status).toBe(202);
    expect((await one.as('editor').get(`/v1/runs/${runId}`)).body.status).toBe('paused');
    expect((await two.as('editor').post(`/v1/runs/${runId}:resume`)).status).toBe(202);
    expect((await two.as('editor').post(`/v1/runs/${runId}/cancel`)).status).toBe(200);
    expect((await one.as('editor').ended(runId)).status).toBe('cancelled');
  });
});

describe.each(STORES)('a host that stops, on %s', (kind) => {
  it('ends the streams and polls that are open, promptly', async () => {
    const host = await startTestHost(kind, inject('postgresUrl'));
    const api = host.as('editor');
    const runId = await api.run('conformance-cancellable');
    await api.until(runId, (snapshot) => JSON.stringify(snapshot).includes('"wait"'));
    const streams = await Promise.all(
      ['updates', 'values', 'messages', 'debug', 'debug&bufferMs=5000'].map((mode) =>
        Stream.open(`${host.url}/v1/runs/${runId}/events?streamMode=${mode}`, KEYS.editor.key),
      ),
    );
    const last = (await api.events(runId)).at(-1).sequence;
    const url = `${host.url}/v1/runs/${runId}/events/poll?lastSequence=${last}&timeout=60`;
    const poll = Stream.open(url, KEYS.editor.key).catch(() => undefined);
    // The request for the metrics is in flight itself.
    for (let inFlight = 0; inFlight < streams.length + 2; ) {
      const { text } = await host.anonymous.get('/metrics');
      inFlight = Number(/^capstan_http_in_flight (\d+)$/m.exec(text)?.[1]);
    }
    const startedAt = Date.now();
    await host.stop();
    for (const stream of streams) {
      await stream.ended();
      expect(stream.isComplete).toBe(true);
    }
    expect((await poll)?.status).toBe(200);
    expect(Date.now() - startedAt).toBeLessThan(PROMPT_MS);
  });

  it('takes no new requests', async () => {
    const host = await startTestHost(kind, inject('postgresUrl'));
    await host.stop();
    await expect(host.anonymous.get('/healthz')).rejects.toThrow();
  });

  it('can be stopped twice', async () => {
    const host = await startTestHost(kind, inject('postgresUrl'));
    await Promise.all([host.stop(), host.stop()]);
    await host.stop();
  });

  it('does not wait for connections on which nothing was asked', async () => {
    const host = await startTestHost(kind, inject('postgresUrl'));
    const { hostname, port } = new URL(host.url);
    const silent = connect(Number(port), hostname);
    silent.on('error', () => {});
    await new Promise((resolve) => silent.once('connect', resolve));
    await host.anonymous.get('/healthz');
    const stopped = host.stop();
    const isPrompt = await Promise.race([stopped.then(() => true), later(PROMPT_MS).then(() => false)]);
    silent.destroy();
    await stopped;
    expect(isPrompt).toBe(true);
  });
});
