import { afterAll, describe, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { fixed, line, node, variable, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { runToRest } from '../../../../test/support/run-to-rest.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { LOG_PAGE } from '../../log-pages.ts';
import { DebugBundleService } from './service.ts';

const ALL = 1_000_000;
/** Nodes of a run whose log has more than one page. */
const MANY = LOG_PAGE;
const host = await openCapabilityHost();
afterAll(() => host.close());
const { runtime } = host;
const ada = callerAs('ada');
const simple = workflow(
  [node('a', 'core.identity', { inputs: { text: variable('word'), other: fixed('shown') } })],
  [],
  { variables: [{ name: 'word', type: 'string' }] },
);
const ids = Array.from({ length: MANY }, (_, index) => `n${index}`);
const long = workflow(
  ids.map((id) => node(id)),
  line(...ids),
);
await registerShared(runtime, simple, long);

interface BundleText {
  readonly text: string;
  readonly pieces: number;
}

async function bundleText(
  runId: string,
  eventsMax = ALL,
  feedback?: ConstructorParameters<typeof DebugBundleService>[1]['feedback'],
): Promise<BundleText> {
  const bundle = await new DebugBundleService(host, { feedback }).bundle(ada, runId, eventsMax);
  if (isRefusal(bundle)) throw new Error(bundle.message);
  const pieces: string[] = [];
  for await (const piece of bundle.pieces()) pieces.push(piece);
  return { text: pieces.join(''), pieces: pieces.length };
}
const bundleOf = async (...args: Parameters<typeof bundleText>) => JSON.parse((await bundleText(...args)).text);
const started = (word = 'unicorn'): Promise<string> => runToRest(host, { workflowId: simple.id, inputs: { word } });

describe('a debug bundle', () => {
  it('has the whole log, spans and totals, and says that nothing is missing', async () => {
    const runId = await started();
    const { sequence } = (await runtime.reader.row(ada.subject, runId))!;
    const bundle = await bundleOf(runId);
    expect(bundle.events.map((event: { sequence: number }) => event.sequence)).toEqual(
      Array.from({ length: sequence + 1 }, (_, index) => index),
    );
    expect(bundle).toMatchObject({ truncated: false, metrics: { nodeCount: 1, eventCount: sequence + 1 } });
    expect(bundle.spans.length).toBeGreaterThan(0);
    expect('annotations' in bundle, 'a host without feedback').toBe(false);
  });

  it('leaves inputs, variables and outputs out of what it says about the run', async () => {
    const { run } = await bundleOf(await started());
    expect(run).toMatchObject({ status: 'completed', inputs: {}, variables: { word: expect.any(String) } });
    expect(JSON.stringify(run)).not.toMatch(/unicorn|shown/);
  });

  it.each([0, 1, 3])('has at most as many events as are asked for: %i', async (eventsMax) => {
    const bundle = await bundleOf(await started(), eventsMax);
    expect(bundle.events).toHaveLength(eventsMax);
    expect(bundle).toMatchObject({ truncated: true, truncatedReason: 'events_truncated_to_max_events' });
  });

  it('is sent page by page, and cut in any of them', async () => {
    const runId = await runToRest(host, { workflowId: long.id });
    const whole = await bundleText(runId);
    expect(whole.pieces).toBeGreaterThan(3);
    expect(JSON.parse(whole.text)).toMatchObject({ truncated: false });
    for (const eventsMax of [LOG_PAGE - 1, LOG_PAGE, LOG_PAGE + 1]) {
      expect((await bundleOf(runId, eventsMax)).events).toHaveLength(eventsMax);
    }
  });

  it('says so when annotations do not fit', async () => {
    const note = { text: 'x'.repeat(400_000) };
    const runId = await started();
    const bundle = await bundleOf(runId, ALL, { annotationsOf: async () => [note, note, note] as never });
    expect(bundle.annotations).toHaveLength(2);
    expect(bundle).toMatchObject({ truncated: true, truncatedReason: 'annotations_truncated_to_size_cap' });
  });

  it('is refused to another tenant', async () => {
    const stranger = { ...ada, subject: { ...ada.subject, tenant: 'beta' } };
    const service = new DebugBundleService(host, { feedback: undefined });
    expect(await service.bundle(stranger, await started(), ALL)).toMatchObject({ refused: 'not_found' });
  });
});
