import { describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { node, register, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { startTestHost } from '../support/host.ts';
import { approval, clarification, governanceGate, interrupt, resolve, waitingRun } from '../support/interrupts.ts';
import { onEachStore, STORES } from '../support/stores.ts';

/** contract.md 7: one place for everything that waits for somebody. */

const INBOX = '/v1/host/capstan/inbox';

type Item = Answer['body'];

async function itemsOf(api: Api, query = 'limit=200'): Promise<Item[]> {
  const { status, body, text } = await api.get(`${INBOX}?${query}`);
  expect(status, text).toBe(200);
  return body.items;
}

const about = (items: readonly Item[], runId: string): Item[] => items.filter((item) => item.runId === runId);

onEachStore('the inbox', (host) => {
  const api = () => host().as('editor');
  const waiting = async (by: Api, ...of: Parameters<typeof workflow>): Promise<Answer['body']> =>
    waitingRun(by, await register(by, workflow(...of)));

  it('has what waits, since when, where to deal with it and what that takes', async () => {
    const before = Date.now();
    const { runId, interrupt: shown } = await waiting(api(), [
      approval('gate', { title: 'Publish the report', description: 'It has\ntwo lines.' }),
    ]);
    const [item] = about(await itemsOf(api()), runId);
    expect(item).toEqual({
      kind: 'interrupt',
      id: shown.interruptId,
      title: 'Publish the report',
      createdAt: expect.any(String),
      ageMs: expect.any(Number),
      link: `/console/runs/${runId}`,
      about: 'It has two lines.',
      runId,
      workflowId: expect.any(String),
      startedBy: 'editor-of-alpha',
      nodeId: 'gate',
      requiredScope: 'approvals:respond',
    });
    const createdAt = Date.parse(item.createdAt);
    expect(createdAt).toBeGreaterThanOrEqual(before);
    expect(item.ageMs).toBeLessThanOrEqual(Date.now() - createdAt);
    expect(JSON.stringify(item)).not.toContain('oken');
  });

  it('has the beginning of a question with a lot of material', async () => {
    const { runId } = await waiting(api(), [approval('gate', { description: 'All of it. '.repeat(5_000) })]);
    const [item] = about(await itemsOf(api()), runId);
    expect(item.about).toMatch(/^All of it\. All of it\..*…$/);
    expect(item.about).toHaveLength(160);
  });

  it('calls each thing by what is asked', async () => {
    const nodes = [
      approval('approval', { title: 'Approve me' }),
      node('untitled', 'core.approvalGate', { name: 'The name of a node' }),
      clarification('clarification', [{ id: 'q', question: 'Which colour?' }]),
      interrupt('event', 'external-event', { eventType: 'order.paid', correlation: {} }),
      interrupt('custom', 'custom', { customKind: 'acme.signature' }),
      { ...interrupt('unsure', 'low-confidence', { agentId: 'abc', threshold: 1, observed: 0 }), name: 'Unsure' },
    ];
    const { runId } = await waiting(api(), nodes);
    const titles = about(await itemsOf(api()), runId).map(({ nodeId, title }) => [nodeId, title]);
    expect(Object.fromEntries(titles)).toEqual({
      approval: 'Approve me',
      untitled: 'The name of a node',
      clarification: 'Which colour?',
      event: 'order.paid',
      custom: 'acme.signature',
      unsure: 'Unsure',
    });
  });

  it('tells gates apart, and says what they take and what they are about', async () => {
    const artifactHash = 'e'.repeat(64);
    const config = { title: 'Deploy', requiredScope: 'packs:publish', artifactHash };
    const { runId } = await waiting(api(), [governanceGate('gate', config)]);
    expect(about(await itemsOf(api()), runId)).toMatchObject([
      { kind: 'gate', title: 'Deploy', requiredScope: 'packs:publish', artifactHash },
    ]);
    const { runId: byRole } = await waiting(api(), [governanceGate('gate', { requiredRole: 'owner' })]);
    expect(about(await itemsOf(api()), byRole)).toMatchObject([{ kind: 'gate', requiredScope: 'approvals:respond' }]);
  });

  it.each([
    ['answered', (runId: string) => resolve(api(), runId, 'gate', { action: 'accept' })],
    ['rejected', (runId: string) => resolve(api(), runId, 'gate', { action: 'reject' })],
    ['cancelled', (runId: string) => api().post(`/v1/runs/${runId}/cancel`)],
  ])('forgets what was %s', async (_what, deed) => {
    const { runId } = await waitingRun(api(), 'conformance-approval');
    expect(about(await itemsOf(api()), runId)).toHaveLength(1);
    expect((await deed(runId)).status).toBe(200);
    expect(about(await itemsOf(api()), runId)).toEqual([]);
  });

  it('forgets what nobody answered in time, or what something else made pointless', async () => {
    // Nobody waits until these two wait: their time may be over before.
    const begun = async (asking: Parameters<typeof workflow>[0][number]): Promise<string> =>
      api().run(await register(api(), workflow([asking])));
    const late = await begun(approval('gate', { timeoutMs: 100 }));
    const expired = await begun(interrupt('w', 'custom', { customKind: 'c' }, { timeoutMs: 100 }));
    const { runId: pointless } = await waiting(api(), [approval('gate'), approval('other')]);
    await resolve(api(), pointless, 'other', { action: 'reject' });
    for (const runId of [late, expired, pointless]) {
      await api().ended(runId);
      expect(about(await itemsOf(api()), runId)).toEqual([]);
    }
  });

  it('keeps what is voted on, and has what is asked again as something new', async () => {
    const { runId } = await waiting(api(), [approval('gate', { requiredApprovals: 2 })]);
    const [first] = about(await itemsOf(api()), runId);
    await resolve(api(), runId, 'gate', { action: 'accept', voter: 'ada' });
    expect(about(await itemsOf(api()), runId)).toMatchObject([{ id: first.id }]);
    await resolve(api(), runId, 'gate', { action: 'refine', refineFeedback: { scope: 'whole' } });
    await api().until(runId, (snapshot) => (snapshot as Answer['body']).interrupt?.key === 'gate:1');
    const again = about(await itemsOf(api()), runId);
    expect(again).toHaveLength(1);
    expect(again[0].id).not.toBe(first.id);
  });

  it('has the run that can be answered, which may be the child of the one that was started', async () => {
    const parent = await waitingRun(api(), 'conformance-interrupt-parent-child-cancel');
    const [{ runId: childRunId }] = parent.childRuns;
    const items = await itemsOf(api());
    expect(about(items, parent.runId)).toEqual([]);
    expect(about(items, childRunId)).toMatchObject([{ nodeId: 'child-gate', link: `/console/runs/${childRunId}` }]);
  });

  it('is not read with a wrong limit or cursor', async () => {
    for (const query of ['limit=0', 'limit=201', 'limit=x', 'cursor=', 'cursor=made-up', 'cursor=MQ', 'kind=gate']) {
      expectRefusal(await api().get(`${INBOX}?${query}`), 400, 'validation_error');
    }
  });

  it('is read by those who may read runs', async () => {
    expect((await itemsOf(host().as('viewer'))).length).toBeGreaterThan(0);
    expectRefusal(await host().as('nothing').get(INBOX), 403, 'forbidden');
    expectRefusal(await host().anonymous.get(INBOX), 401, 'unauthenticated');
  });

  it('shows nothing of other tenants, workspaces or test keys', async () => {
    const keepers = ['editor', 'workspace', 'other', 'test'] as const;
    const runIds = new Map<string, string>();
    for (const who of keepers) runIds.set(who, (await waitingRun(host().as(who), 'conformance-approval')).runId);
    const sees = async (who: (typeof keepers)[number]): Promise<string[]> => {
      const items = await itemsOf(host().as(who));
      return keepers.filter((keeper) => about(items, runIds.get(keeper)!).length > 0);
    };
    // A key of the whole tenant sees all of its workspaces.
    expect(await sees('editor')).toEqual(['editor', 'workspace']);
    expect(await sees('workspace')).toEqual(['workspace']);
    expect(await sees('other')).toEqual(['other']);
    expect(await sees('test')).toEqual(['test']);
  });
});

onEachStore('forks in the inbox', (host) => {
  it('wait beside their source, each on its own page', async () => {
    const api = host().as('editor');
    const { runId, interrupt: shown } = await waitingRun(api, 'conformance-approval');
    const runIds = [runId];
    while (runIds.length < 4) {
      const fork = await api.post(`/v1/runs/${runId}:fork`, { mode: 'branch', fromSeq: 5 });
      expect(fork.status, fork.text).toBe(201);
      runIds.push(fork.body.runId);
    }
    const pages: Item[] = [];
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const { body } = await api.get(`${INBOX}?limit=1${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`);
      pages.push(...body.items);
      cursor = body.nextCursor;
    }
    expect(pages.map((item) => item.runId).sort()).toEqual(runIds.sort());
    expect(new Set(pages.map(({ id }) => id))).toEqual(new Set([shown.interruptId]));
    expect((await resolve(api, runIds[2]!, 'gate', { action: 'accept' })).status).toBe(200);
    expect(await itemsOf(api)).toHaveLength(3);
  });
});

describe.each(STORES)('pages of the inbox, on %s', (kind) => {
  it('have everything once, newest first, however small they are and whatever comes in between', async () => {
    const host = await startTestHost(kind, inject('postgresUrl'));
    try {
      const api = host.as('editor');
      const branches = Array.from({ length: 6 }, (_, index) => approval(`gate-${index}`));
      const workflowId = await register(api, workflow(branches));
      for (let count = 0; count < 3; count++) await waitingRun(api, workflowId);
      const all = await itemsOf(api);
      expect(all).toHaveLength(18);
      // Nodes of one run ask in the same moment; then the order is by id.
      const places = all.map(({ createdAt, id }) => `${createdAt} ${id}`);
      expect(places).toEqual(places.toSorted().toReversed());
      for (const limit of [1, 4, 17, 18, 19]) {
        const seen: Item[] = [];
        let cursor: string | undefined;
        do {
          const { body } = await api.get(
            `${INBOX}?limit=${limit}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`,
          );
          expect(body.items.length).toBeLessThanOrEqual(limit);
          seen.push(...body.items);
          cursor = body.nextCursor;
          if (limit === 4 && seen.length === 4) await waitingRun(api, 'conformance-approval');
        } while (cursor);
        const newer = limit > 4 ? 1 : 0;
        expect(seen.slice(newer).map(({ id }) => id)).toEqual(all.map(({ id }) => id));
      }
    } finally {
      await host.stop();
    }
  });
});
