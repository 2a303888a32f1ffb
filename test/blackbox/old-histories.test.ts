import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bringBack, KEPT, keep, oldHistories } from '../histories/old-histories.ts';
import type { Answer, Api } from '../support/api.ts';
import { startTestHost, type TestHost } from '../support/host.ts';

/**
 * Goal: what a release wrote means the same to every later one. Method: the rows of its runs are kept in the repository;
 * here they are folded into the same snapshots, and replayed without a difference. `npm run histories` adds those of the
 * release that this is.
 */
const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
let host: TestHost;
const api = (): Api => host.as('editor');
const storyOf = (events: readonly Answer['body'][]): string[] => events.map(({ type, nodeId }) => `${type} ${nodeId}`);

beforeAll(async () => {
  host = await startTestHost('sqlite', undefined);
  if (process.env.CAPSTAN_WRITE_HISTORIES === undefined) return;
  for (const kept of KEPT) await keep(api(), host.config, version, kept);
});
afterAll(() => host.stop());

describe.each(oldHistories())('the history $name of $release', (history) => {
  const { runId, snapshot } = history;
  beforeAll(() => bringBack(host.config, history));

  it('folds into the same snapshot', async () => {
    expect((await api().get(`/v1/runs/${runId}`)).body).toMatchObject(snapshot);
  });

  it('replays without a difference', async () => {
    const { body, status, text } = await api().post(`/v1/runs/${runId}:fork`, { mode: 'replay', fromSeq: 0 });
    expect(status, text).toBe(201);
    expect((await api().ended(body.runId)).status).toBe(snapshot.status);
    const [source, replayed] = [await api().events(runId), await api().events(body.runId)];
    expect(storyOf(replayed)).toEqual(storyOf(source));
  });
});

it('there are histories of every kind', () => {
  expect(new Set(oldHistories().map(({ name }) => name))).toEqual(new Set(KEPT.map(({ name }) => name)));
});
