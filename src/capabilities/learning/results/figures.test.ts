import { afterAll, expect, it } from 'vitest';
import { openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { runToRest } from '../../../../test/support/run-to-rest.ts';
import { TRIAL_TAG } from '../../../protocol/running/trials.ts';
import { FigureReader } from './figures.ts';

const host = await openCapabilityHost();
afterAll(() => host.close());
const { runtime, clock } = host;
const work = workflow([node('a')]);
await registerShared(runtime, work);

const endedRun = (tags: readonly string[] = []): Promise<string> => runToRest(host, { workflowId: work.id, tags });

it('has the counted cost of every run whose cost is known, and no trials', async () => {
  const [priced, unpriced] = [await endedRun(), await endedRun(), await endedRun(), await endedRun([TRIAL_TAG])];
  const tokens = { input: 1, output: 1 };
  const costs = {
    of: async () =>
      new Map([
        [priced!, { usd: 0.5, tokens }],
        [unpriced!, { tokens }],
      ]),
  };
  const reader = new FigureReader(runtime, { feedback: undefined, costs });
  const now = clock.now();
  const [, after] = await reader.of({ tenant: 'alpha' }, [work.id], [now - 2, now - 1], [now - 1, now + 60_000]);
  expect(after).toMatchObject({ runs: 3, failed: 0, costs: [0, 0.5] });
});

it('counts the corrected runs of each window, by asking about these runs alone', async () => {
  const start = clock.now();
  const [wrong, right] = [await endedRun(), await endedRun()];
  const asked: (readonly string[])[] = [];
  const feedback = {
    opinions: async () => new Map(),
    corrected: async (_tenant: string, runIds: readonly string[]) => {
      asked.push(runIds.toSorted());
      return new Set([wrong]);
    },
  };
  const reader = new FigureReader(runtime, { feedback, costs: { of: async () => new Map() } });
  const windows = [
    [start - 2_000, start - 1_000],
    [start, start + 60_000],
  ] as const;
  const [before, after] = await reader.of({ tenant: 'alpha' }, [work.id], ...windows);
  expect([before.corrected, after.corrected]).toEqual([0, 1]);
  expect(after.badRunIds).toEqual([wrong]);
  expect(asked.at(-1)).toEqual(expect.arrayContaining([wrong, right]));
});
