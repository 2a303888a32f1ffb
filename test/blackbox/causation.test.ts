import { expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { edge, node, register, workflow } from '../support/definitions.ts';
import { approval, resolve, waits } from '../support/interrupts.ts';
import { onOneStore } from '../support/stores.ts';

/** core.md 3.4 and learning.md 5.19: every event that has a cause names it. */

type Body = Answer['body'];

/** Caused by somebody outside the run: a caller, an operator, another host, the one who forks. */
const FROM_OUTSIDE = new Set([
  'run.started',
  'run.cancelled',
  'run.paused',
  'run.resumed',
  'capstan.pause.requested',
  'replay.diverged',
]);

/** What is wrong with the causes of a log, one line for each event. */
function problemsOf(events: readonly Body[]): string[] {
  const known = new Set<string>();
  const wasCancelled = events.at(-1)?.type === 'run.cancelled';
  return events.flatMap(({ eventId, type, nodeId, causationId }) => {
    const label = `${type} ${nodeId ?? ''}`;
    const isFree = FROM_OUTSIDE.has(type) || (type === 'node.cancelled' && wasCancelled);
    const isKnown = known.has(causationId);
    known.add(eventId);
    if (causationId === undefined) return isFree ? [] : [`${label} names no cause`];
    return isKnown || type === 'run.started' ? [] : [`${label} names a cause that is not before it: ${causationId}`];
  });
}

onOneStore('the causes of events', (host) => {
  const api = (): Api => host().as('editor');
  const isStill = ({ status }: { status: string }): boolean => status !== 'running' && status !== 'pending';

  /** Runs a workflow until it ends or waits; one that waits is cancelled. */
  async function logOf(workflowId: string): Promise<Body[]> {
    const started = await api().post('/v1/runs', { workflowId, inputs: { delayMs: 5 } });
    if (started.status !== 201) return [];
    const { runId } = started.body;
    await api().until(runId, isStill);
    await api().post(`/v1/runs/${runId}/cancel`, {});
    await api().ended(runId);
    return api().events(runId);
  }

  it('are named in the logs of all fixtures', async () => {
    const { fixtures } = (await api().get('/.well-known/openwop')).body;
    // Its delay is fixed at half a minute.
    const ids: string[] = fixtures.filter((id: string) => id !== 'conformance-dispatch-cancellable-child');
    const logs = await Promise.all(ids.map(async (id) => ({ id, events: await logOf(id) })));
    expect(logs.flatMap(({ id, events }) => problemsOf(events).map((problem) => `${id}: ${problem}`))).toEqual([]);
    const types = new Set(logs.flatMap(({ events }) => events.map(({ type }) => type)));
    expect(types.size).toBeGreaterThan(20);
  });

  it('lead from a child run to its parent, and are those of the fork in a fork', async () => {
    const child = await register(api(), workflow([node('inner')]));
    const definition = workflow(
      [approval('sign'), node('sub', 'core.subWorkflow', { config: { workflowId: child } })],
      [edge('sign', 'sub')],
    );
    const runId = await api().run(await register(api(), definition));
    await waits(api(), runId);
    await resolve(api(), runId, 'sign', { action: 'accept' });
    await api().ended(runId);
    const events = await api().events(runId);
    expect(problemsOf(events)).toEqual([]);
    const { childRunId } = events.find(({ type }) => type === 'node.dispatched').payload;
    const [started] = await api().events(childRunId);
    const cause = events.find(({ eventId }) => eventId === started.causationId);
    expect(cause).toMatchObject({ type: 'node.started', nodeId: 'sub' });

    const shape = (log: readonly Body[]) => {
      const ids = log.map(({ eventId }) => eventId);
      return log.map(({ type, causationId }) => [type, ids.indexOf(causationId)]);
    };
    for (const fromSeq of [0, Math.floor(events.length / 2), events.length - 1]) {
      const { body } = await api().post(`/v1/runs/${runId}:fork`, { mode: 'replay', fromSeq });
      await api().ended(body.runId);
      expect(shape(await api().events(body.runId))).toEqual(shape(events));
    }
  });
});
