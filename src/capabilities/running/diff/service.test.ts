import { afterAll, describe, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { line, node, variable, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { runToRest } from '../../../../test/support/run-to-rest.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { perform } from '../../../runtime/change.ts';
import { LOG_PAGE } from '../../log-pages.ts';
import { RunService } from '../runs/service.ts';
import { DiffService } from './service.ts';

const host = await openCapabilityHost();
afterAll(() => host.close());
const { runtime } = host;
const ada = callerAs('ada');
const variables = [{ name: 'word', type: 'string' as const }];
const echo = workflow([node('a', 'core.identity', { inputs: { text: variable('word') } })], [], { variables });
const waiting = workflow(
  [
    node('a', 'core.identity', { inputs: { text: variable('word') } }),
    node('b', 'core.delay', { config: { delayMs: 60_000 } }),
  ],
  line('a', 'b'),
  { variables },
);
const ids = Array.from({ length: LOG_PAGE }, (_, index) => `n${index}`);
const long = workflow(
  [...ids.map((id) => node(id)), node('last', 'core.identity', { inputs: { text: variable('word') } })],
  line(...ids, 'last'),
  {
    variables,
  },
);
await registerShared(runtime, echo, waiting, long);
const diff = new DiffService(runtime);

const run = (word: string, workflowId = echo.id): Promise<string> => runToRest(host, { workflowId, inputs: { word } });
async function compared(runId: string, against: string) {
  const found = await diff.compare(ada, runId, against);
  if (isRefusal(found)) throw new Error(found.message);
  return found;
}

describe('two runs', () => {
  it('that did the same do not differ, whatever their ids and times', async () => {
    const [one, other] = [await run('same'), await run('same')];
    expect(await compared(one, other)).toMatchObject({
      log: { diffs: [], divergedAtSeq: null },
      stateDiff: {},
      isTruncated: false,
    });
  });

  it('differ from the first event that says something else', async () => {
    const [one, other] = [await run('left'), await run('right')];
    const { log, stateDiff, isTruncated } = await compared(one, other);
    expect(log.diffs[0]).toMatchObject({ seq: log.divergedAtSeq, op: 'changed' });
    expect(JSON.stringify(stateDiff)).toMatch(/left.*right/);
    expect(isTruncated).toBe(false);
  });

  it('are compared beyond the first page of their logs', async () => {
    const [one, other] = [await run('left', long.id), await run('right', long.id)];
    const { log } = await compared(one, other);
    expect(log.divergedAtSeq).toBeGreaterThan(LOG_PAGE);
  });

  it('of different lengths differ by what one has more, in either direction', async () => {
    const [short, more] = [await run('same'), await run('same', long.id)];
    expect((await compared(short, more)).log.diffs.at(-1)).toMatchObject({ op: 'added' });
    expect((await compared(more, short)).log.diffs.at(-1)).toMatchObject({ op: 'removed' });
  });

  it('show no texts that speak of credentials', async () => {
    const [one, other] = [await run('my secret is a swordfish'), await run('nothing')];
    expect(JSON.stringify((await compared(one, other)).stateDiff)).not.toContain('swordfish');
  });
});

describe('a run in flight', () => {
  it('is compared up to its last event, and the result is not the whole', async () => {
    const [one, other] = [await run('same', waiting.id), await run('same', waiting.id)];
    expect(await compared(one, other)).toMatchObject({ log: { diffs: [] }, isTruncated: true });
    expect(await compared(one, one)).toMatchObject({ log: { diffs: [] }, isTruncated: true });
    await perform(runtime, () => new RunService(host, { models: [] }).cancel(ada, other));
    expect(await compared(one, other), 'only one has ended').toMatchObject({ log: { diffs: [] }, isTruncated: true });
  });
});

it('a run of another tenant is not compared, on either side', async () => {
  const [one, other] = [await run('same'), await run('same')];
  const stranger = { ...ada, subject: { ...ada.subject, tenant: 'beta' } };
  expect(await diff.compare(stranger, one, other)).toMatchObject({ refused: 'not_found' });
  expect(await diff.compare(ada, one, 'run-none')).toMatchObject({ refused: 'not_found' });
  expect(await diff.compare(ada, 'run-none', 'run-none')).toMatchObject({ refused: 'not_found' });
});
