import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Answer, Api } from '../support/api.ts';
import { freshFolder, migratedDatabase } from '../support/database.ts';
import { edge, node, register, workflow } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { approval, eventsOf, governanceGate, interrupt, resolve, waitingRun } from '../support/interrupts.ts';
import { keyRecords } from '../support/keys.ts';
import { type HostProcess, spawnHost } from '../support/process.ts';
import { STORES, storesFor } from '../support/stores.ts';

/** durability.md 1.8: of many who answer at once one is heard, and of many who vote at once all are. */

const CROWD = 50;
const VOTERS = 24;
const PEOPLE = Array.from({ length: 12 }, (_, index) => ({
  key: `reviewer-number-${index}`,
  tenant: 'alpha',
  principal: `reviewer-number-${index}`,
  role: 'reviewer',
}));

/** One host, and on PostgreSQL also two. */
const SETTINGS = [...STORES.map((kind) => [kind, 1] as const), ['postgres', 2] as const];

describe.each(SETTINGS)('at once, on %s with %i host(s)', (kind, count) => {
  const hosts: TestHost[] = [];

  beforeAll(async () => {
    hosts.push(await startTestHost(kind, inject('postgresUrl'), { apiKeys: keyRecords(PEOPLE) }));
    while (hosts.length < count) hosts.push(await hosts[0]!.another());
  });
  afterAll(async () => {
    for (const host of hosts.toReversed()) await host.stop();
  });

  const api = (turn = 0): Api => hosts[turn % hosts.length]!.as('editor');
  const crowd = <T>(size: number, each: (index: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: size }, (_, index) => each(index)));
  const tally = (answers: readonly Answer[]): Record<string, number> =>
    Object.fromEntries(
      [...Map.groupBy(answers, ({ status, body }) => `${status} ${body.error ?? body.status}`)].map(([what, of]) => [
        what,
        of.length,
      ]),
    );

  it('one of fifty answers is taken, and the others are told', async () => {
    const workflowId = await register(api(), workflow([interrupt('wait', 'custom', { customKind: 'c' })]));
    const { runId } = await waitingRun(api(), workflowId);
    const answers = await crowd(CROWD, (index) => resolve(api(index), runId, 'wait', { from: index }));
    expect(tally(answers)).toEqual({ '200 running': 1, '409 interrupt_already_resolved': CROWD - 1 });
    const winner = answers.findIndex(({ status }) => status === 200);
    expect((await api().ended(runId)).nodeStates.wait.outputs).toEqual({ from: winner });
    expect(await eventsOf(api(), runId, 'interrupt.resolved')).toHaveLength(1);
    expect(await eventsOf(api(), runId, 'node.resumed')).toHaveLength(1);
  });

  it('one of fifty answers is taken by token and by run', async () => {
    const { runId, interrupt: shown } = await waitingRun(api(), 'conformance-approval');
    const answers = await crowd(CROWD, (index) =>
      index % 2 === 0
        ? resolve(api(index), runId, 'gate', { action: 'accept' })
        : api(index).post(`/v1/interrupts/${shown.interruptToken}`, { resumeValue: { action: 'accept' } }),
    );
    expect(tally(answers)).toEqual({ '200 running': 1, '409 interrupt_already_resolved': CROWD - 1 });
    expect((await api().ended(runId)).status).toBe('completed');
    expect(await eventsOf(api(), runId, 'interrupt.resolved')).toHaveLength(1);
  });

  it('an answer and a cancellation: one of them decides, and both are told what came of it', async () => {
    await crowd(20, async (index) => {
      const { runId } = await waitingRun(api(index), 'conformance-clarification');
      const [answer, cancel] = await Promise.all([
        resolve(api(index), runId, 'ask', { answers: { q1: 'blue' } }),
        api(index + 1).post(`/v1/runs/${runId}/cancel`),
      ]);
      expect([200, 410], answer.text).toContain(answer.status);
      expect(cancel.status).toBe(200);
      const { status } = await api().ended(runId);
      expect(status).toBe(cancel.body.status);
      if (answer.status !== 200) expect(status).toBe('cancelled');
      expect((await eventsOf(api(), runId, 'interrupt.resolved')).length).toBe(answer.status === 200 ? 1 : 0);
    });
  });

  it('an answer in the last moment is in time or too late, never both', async () => {
    const outcomes = await crowd(16, async (index) => {
      const gate = approval('gate', { timeoutMs: 1 + 4 * index });
      const runId = await api(index).run(await register(api(index), workflow([gate])));
      const answer = await answerOnceAsked(api(index + 1), runId);
      const { status } = await api().ended(runId);
      expect([200, 409], answer.text).toContain(answer.status);
      expect(status).toBe(answer.status === 200 ? 'completed' : 'failed');
      const resolved = await eventsOf(api(), runId, 'interrupt.resolved');
      expect(resolved).toHaveLength(1);
      expect(resolved[0].payload.reason).toBe(answer.status === 200 ? undefined : 'timeout');
      return status;
    });
    expect(outcomes).toHaveLength(16);
  });

  it('no vote of many is lost', async () => {
    const gate = approval('gate', { requiredApprovals: VOTERS, rejectionPolicy: 'majority' });
    const { runId } = await waitingRun(api(), await register(api(), workflow([gate])));
    const answers = await crowd(VOTERS, (index) =>
      resolve(api(index), runId, 'gate', { action: 'accept', voter: `voter-${index}` }),
    );
    expect(tally(answers)).toEqual({ '200 waiting-approval': VOTERS - 1, '200 running': 1 });
    expect((await api().ended(runId)).status).toBe('completed');
    const received = await eventsOf(api(), runId, 'approval.received');
    expect(new Set(received.map(({ payload }) => payload.decidedBy)).size).toBe(VOTERS);
    expect(received).toHaveLength(VOTERS);
  });

  it('votes beyond the quorum come too late, and only those', async () => {
    const { runId } = await waitingRun(api(), 'conformance-interrupt-quorum');
    const answers = await crowd(10, (index) =>
      resolve(api(index), runId, 'gate', { action: 'accept', voter: `voter-${index}` }),
    );
    expect(tally(answers)).toEqual({
      '200 waiting-approval': 2,
      '200 running': 1,
      '409 interrupt_already_resolved': 7,
    });
    expect(await eventsOf(api(), runId, 'approval.received')).toHaveLength(3);
  });

  it('no grant of a gate is lost, and each counts on', async () => {
    const gate = governanceGate('gate', { requiredRole: 'reviewer', quorum: PEOPLE.length });
    const { runId } = await waitingRun(api(), await register(api(), workflow([gate])));
    const answers = await crowd(PEOPLE.length, (index) => {
      const person = new Api(hosts[index % hosts.length]!.url, PEOPLE[index]!.key);
      return resolve(person, runId, 'gate', { decision: 'granted' });
    });
    expect(tally(answers)).toEqual({ '200 waiting-approval': PEOPLE.length - 1, '200 running': 1 });
    const granted = await eventsOf(api(), runId, 'approval.granted');
    expect(granted.map(({ payload }) => payload.quorumProgress.granted)).toEqual(PEOPLE.map((_, index) => index + 1));
    expect((await api().ended(runId)).status).toBe('completed');
  });

  it('branches of one run are answered together, and none is forgotten', async () => {
    const ids = Array.from({ length: 10 }, (_, index) => `branch-${index}`);
    const nodes = [
      ...ids.flatMap((id) => [interrupt(id, 'custom', { customKind: id }), node(`after-${id}`)]),
      node('join'),
    ];
    const edges = ids.flatMap((id) => [edge(id, `after-${id}`), edge(`after-${id}`, 'join')]);
    const { runId } = await waitingRun(api(), await register(api(), workflow(nodes, edges)));
    const answers = await Promise.all(ids.map((id, index) => resolve(api(index), runId, id, { of: id })));
    expect(answers.map(({ status, text }) => [status, text]).filter(([status]) => status !== 200)).toEqual([]);
    const { status, nodeStates } = await api().ended(runId);
    expect(status).toBe('completed');
    for (const id of ids) expect(nodeStates[id].outputs).toEqual({ of: id });
    const order = (await api().events(runId)).map(({ type, nodeId }) => `${type} ${nodeId}`);
    expect(order.filter((each) => each === 'node.completed join')).toHaveLength(1);
    for (const id of ids) expect(order.filter((each) => each === `node.completed after-${id}`)).toHaveLength(1);
  });
});

describe.each(storesFor('a host that is killed while it is answered'))(
  'a host that is killed while it is answered, on %s',
  (kind) => {
    it('has lost no answer that it acknowledged, and asks nothing twice', async () => {
      const folder = freshFolder();
      const store = kind === 'postgres' ? { DATABASE_URL: await migratedDatabase(inject('postgresUrl')) } : {};
      const start = (): Promise<HostProcess> =>
        spawnHost({ CAPSTAN_DATA: folder.path, CAPSTAN_LEASE_MS: '600', ...store });
      let host = await start();
      try {
        const runIds = await Promise.all(
          Array.from(
            { length: 12 },
            async () => (await waitingRun(host.as('editor'), 'conformance-clarification')).runId,
          ),
        );
        const [doomed, waiting] = [runIds.slice(0, 8), runIds.slice(8)];
        const answers = await Promise.all(
          doomed.map((runId, index) =>
            resolve(host.as('editor'), runId, 'ask', { answers: { q1: `number ${index}` } }),
          ),
        );
        host.signal('SIGKILL');
        await host.exit;
        expect(answers.map(({ status }) => status)).toEqual(doomed.map(() => 200));
        host = await start();
        const api = host.as('editor');
        for (const [index, runId] of doomed.entries()) {
          const { status, nodeStates } = await api.ended(runId);
          expect(status).toBe('completed');
          expect(nodeStates.ask.outputs).toEqual({ answers: { q1: `number ${index}` } });
          expect(await eventsOf(api, runId, 'interrupt.requested')).toHaveLength(1);
          expect(await eventsOf(api, runId, 'interrupt.resolved')).toHaveLength(1);
        }
        for (const runId of waiting) {
          expect((await api.get(`/v1/runs/${runId}`)).body.status).toBe('waiting-input');
          expect((await resolve(api, runId, 'ask', { answers: { q1: 'after all' } })).status).toBe(200);
          expect((await api.ended(runId)).status).toBe('completed');
          expect(await eventsOf(api, runId, 'interrupt.requested')).toHaveLength(1);
        }
      } finally {
        host.signal('SIGKILL');
        await host.exit;
        folder.remove();
      }
    });
  },
);

/** Answers as soon as there is something to answer. */
async function answerOnceAsked(api: Api, runId: string): Promise<Answer> {
  for (;;) {
    const answer = await resolve(api, runId, 'gate', { action: 'accept' });
    if (answer.body.error !== 'interrupt_not_found') return answer;
  }
}
