import { afterAll, beforeAll, expect, it } from 'vitest';
import { line, node, register, variable, workflow } from '../support/definitions.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { Stream } from '../support/stream.ts';
import { until } from '../support/until.ts';

/** A stream whose caller reads nothing costs the host next to nothing, and not for long. */

/** More than the connection itself holds. */
const STEPS = 40;
const TEXT = 'x'.repeat(500_000);
const SIZE = 400_000_000;

let host: TestHost | undefined;
beforeAll(async () => {
  host = await startTestHost('sqlite', undefined, {
    streamUnreadMs: 2_000,
    outputLimits: { output: SIZE, variable: SIZE, state: SIZE, log: SIZE },
  });
});
afterAll(() => host?.stop());

it('is cut, and can be continued from the last event that was read', { timeout: 120_000 }, async () => {
  const api = host!.as('editor');
  const steps = Array.from({ length: STEPS }, (_, index) => `s${index}`);
  const definition = workflow(
    steps.map((id) => node(id, 'core.identity', { inputs: { text: variable('text') } })),
    line(...steps),
    { variables: [{ name: 'text', type: 'string' }] },
  );
  const runId = await api.run(await register(api, definition), { inputs: { text: TEXT } });
  expect((await api.ended(runId)).status).toBe('completed');
  const followed = async (): Promise<string | undefined> =>
    /^capstan_runs_followed (\d+)$/m.exec((await api.get('/metrics')).text)?.[1];

  const path = `${host!.url}/v1/runs/${runId}/events?streamMode=debug`;
  const unread = await Stream.open(path, KEYS.editor.key);
  unread.pause();
  await until(followed, (count) => count === '0');
  unread.resume();
  await unread.ended();
  expect(unread.isComplete).toBe(false);

  const frames = [...unread.frames];
  for (let isComplete = false; !isComplete; ) {
    const rest = await Stream.open(path, KEYS.editor.key, { 'last-event-id': frames.at(-1)!.id! });
    await rest.ended();
    frames.push(...rest.frames);
    isComplete = rest.isComplete;
  }
  const seen = frames.map(({ id }) => Number(id));
  expect(seen).toEqual(seen.map((_, index) => index));
  expect(frames.at(-1)).toMatchObject({ event: 'run.completed' });
});
