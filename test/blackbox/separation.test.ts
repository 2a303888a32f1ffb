import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/protocol/format/json.ts';
import type { WorkflowNode } from '../../src/protocol/running/workflows.ts';
import { type Answer, Api } from '../support/api.ts';
import { line, node, register, unique, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import {
  approval,
  clarification,
  eventsOf,
  governanceGate,
  interrupt,
  resolve,
  waitingRun,
  waits,
} from '../support/interrupts.ts';
import { keyRecords } from '../support/keys.ts';
import { onEachStore } from '../support/stores.ts';

/** Separation of duties: who may not approve, how many people must, how long it counts, and whom a key stands for. */

const KEYS_OF_ADA = [1, 2].map((number) => ({
  key: `key-${number}-of-ada`,
  tenant: 'alpha',
  principal: `ada-${number}`,
  person: 'ada',
  role: 'owner',
}));
const ACCEPT = { action: 'accept' };
const GRANT = { decision: 'granted' };
const PROTOCOL = { artifactId: 'a', artifactType: 't', title: 'Pay?', actions: ['accept', 'reject'] };

/** Each kind of gate with some rules, and the answer that approves. */
const GATES: readonly [string, (rules: JsonObject) => WorkflowNode, JsonObject][] = [
  ['an approval', (rules) => approval('gate', rules), ACCEPT],
  ['a governance gate', (rules) => governanceGate('gate', { requiredRole: 'editor', ...rules }), GRANT],
  ['an approval of the protocol', (rules) => interrupt('gate', 'approval', { ...PROTOCOL, ...rules }), ACCEPT],
];

onEachStore(
  'separation of duties',
  (host) => {
    const [ada, adaToo] = KEYS_OF_ADA.map(
      ({ key }) =>
        () =>
          new Api(host().url, key),
    ) as [() => Api, () => Api];
    const by = (who: 'owner' | 'reviewer' | 'editor') => host().as(who);
    const waiting = async (api: Api, nodes: WorkflowNode[], ...ids: string[]): Promise<Answer['body']> =>
      waitingRun(api, await register(by('editor'), workflow(nodes, line(...ids))));

    describe.each(GATES)('at %s', (_kind, gate, yes) => {
      it('keeps whoever started the run from approving, with every key of theirs', async () => {
        const { runId } = await waiting(ada(), [gate({ excludeInitiator: true })]);
        for (const api of [ada(), adaToo()]) {
          const answer = await resolve(api, runId, 'gate', yes);
          expectRefusal(answer, 403, 'forbidden');
          expect(answer.body.details.reason).toBe('initiator');
        }
        expect((await resolve(by('owner'), runId, 'gate', yes)).status).toBe(200);
        expect((await by('editor').ended(runId)).status).toBe('completed');
      });

      it('keeps whoever forked the run from approving, and whoever started its source', async () => {
        const { runId } = await waiting(by('editor'), [gate({ excludeInitiator: true })]);
        const forked = await by('reviewer').post(`/v1/runs/${runId}:fork`, { mode: 'branch', fromSeq: 1 });
        expect(forked.status, forked.text).toBe(201);
        const branch = forked.body.runId;
        await waits(by('editor'), branch);
        for (const who of ['reviewer', 'editor'] as const) {
          expectRefusal(await resolve(by(who), branch, 'gate', yes), 403, 'forbidden');
        }
        expect((await resolve(by('owner'), branch, 'gate', yes)).status).toBe(200);
        expect((await by('editor').ended(branch)).status).toBe('completed');
      });

      it('keeps everybody who wrote a part of it from approving, whoever came last', async () => {
        const nodes = [
          clarification('ask', [{ id: 'q', question: 'How much?' }]),
          approval('edit'),
          gate({ excludeAuthors: true }),
        ];
        const { runId } = await waiting(by('editor'), nodes, 'ask', 'edit', 'gate');
        expect((await resolve(ada(), runId, 'ask', { answers: { q: '10' } })).status).toBe(200);
        await by('editor').until(runId, ({ status }) => status === 'waiting-approval');
        const edited = { action: 'edit-accept', editedArtifactData: { amount: 11 } };
        expect((await resolve(by('reviewer'), runId, 'edit', edited)).status).toBe(200);
        await by('editor').until(runId, (run) => (run as Answer['body']).interrupt?.nodeId === 'gate');
        for (const api of [ada(), adaToo(), by('reviewer')]) {
          const answer = await resolve(api, runId, 'gate', yes);
          expectRefusal(answer, 403, 'forbidden');
          expect(answer.body.details.reason).toBe('author');
        }
        expect((await resolve(by('owner'), runId, 'gate', yes)).status).toBe(200);
        expect((await by('editor').ended(runId)).status).toBe('completed');
      });

      it('counts people, not keys', async () => {
        const { runId } = await waiting(by('editor'), [gate({ minDistinctPeople: 2 })]);
        for (const api of [ada(), adaToo(), ada()]) {
          const answer = await resolve(api, runId, 'gate', yes);
          expect([answer.status, answer.body.status]).toEqual([200, 'waiting-approval']);
        }
        expect((await resolve(by('owner'), runId, 'gate', yes)).status).toBe(200);
        expect((await by('editor').ended(runId)).status).toBe('completed');
        const replayed = await by('editor').post(`/v1/runs/${runId}:fork`, { mode: 'replay' });
        expect((await by('editor').ended(replayed.body.runId)).status).toBe('completed');
        expect(await eventsOf(by('editor'), replayed.body.runId, 'replay.diverged')).toEqual([]);
      });

      it('takes no token and no label where it must know who votes', async () => {
        for (const rules of [{ excludeInitiator: true }, { excludeAuthors: true }, { minDistinctPeople: 2 }]) {
          const { runId, interrupt: asked } = await waiting(by('editor'), [gate(rules)]);
          const byToken = await host().anonymous.post(`/v1/interrupts/${asked.interruptToken}`, { resumeValue: yes });
          expectRefusal(byToken, 403, 'forbidden');
          if (yes === GRANT) continue;
          expectRefusal(await resolve(by('owner'), runId, 'gate', { ...yes, voter: 'bob' }), 403, 'forbidden');
        }
      });

      it('lets nothing start after the approval has expired', async () => {
        const nodes = [gate({ grantTtlMs: 20 }), node('wait', 'core.delay', { config: { delayMs: 60 } }), node('pay')];
        const { runId } = await waiting(by('editor'), nodes, 'gate', 'wait', 'pay');
        expect((await resolve(by('owner'), runId, 'gate', yes)).status).toBe(200);
        const { status, error, nodeStates } = await by('editor').ended(runId);
        expect({ status, code: error.code }).toEqual({ status: 'failed', code: 'approval_expired' });
        // On a slow machine the approval has expired before even the delay begins.
        expect(nodeStates.pay?.status).not.toBe('completed');
      });
    });

    it('counts two keys of one person as one vote in every quorum', async () => {
      const { runId } = await waiting(by('editor'), [approval('gate', { requiredApprovals: 2 })]);
      for (const api of [ada(), adaToo()]) await resolve(api, runId, 'gate', ACCEPT);
      expect((await by('editor').get(`/v1/runs/${runId}`)).body.status).toBe('waiting-approval');
      await resolve(by('reviewer'), runId, 'gate', ACCEPT);
      expect((await by('editor').ended(runId)).status).toBe('completed');
    });

    it('lets whoever started the run reject it', async () => {
      const { runId } = await waiting(by('editor'), [approval('gate', { excludeInitiator: true })]);
      expect((await resolve(by('editor'), runId, 'gate', { action: 'reject' })).status).toBe(200);
      expect((await by('editor').ended(runId)).error.code).toBe('approval_rejected');
    });

    it('holds for child runs too', async () => {
      const child = await register(by('editor'), workflow([approval('gate', { excludeInitiator: true })]));
      const sub = node('sub', 'core.subWorkflow', { config: { workflowId: child } });
      const { childRuns } = await waiting(ada(), [sub]);
      expectRefusal(await resolve(adaToo(), childRuns[0].runId, 'gate', ACCEPT), 403, 'forbidden');
    });

    it('records the attempt at a governance gate', async () => {
      const { runId } = await waiting(by('editor'), [
        governanceGate('gate', { requiredRole: 'editor', excludeInitiator: true }),
      ]);
      await resolve(by('editor'), runId, 'gate', GRANT);
      const [event] = await eventsOf(by('editor'), runId, 'authorization.decided');
      expect(event.payload).toMatchObject({ principal: 'editor-of-alpha', allowed: false, reason: 'initiator' });
    });

    describe('a new key', () => {
      const create = (body: object): Promise<Answer> =>
        by('owner').post('/v1/host/capstan/keys', { name: 'new', role: 'editor', ...body });

      it.each(['host', 'system', 'Host', 'host:synthesis', 'nobody', 'token-bearer'])(
        'cannot be %s, and cannot name it as its person',
        async (name) => {
          for (const field of ['principal', 'person']) {
            const answer = await create({ [field]: name });
            expectRefusal(answer, 400, 'validation_error');
            expect(answer.body.details.field).toBe(field);
          }
        },
      );

      it('cannot take the principal of another, configured or stored', async () => {
        expectRefusal(await create({ principal: 'reviewer-of-alpha' }), 409, 'conflict');
        const principal = unique('robot');
        expect((await create({ principal })).status).toBe(201);
        expectRefusal(await create({ principal }), 409, 'conflict');
      });

      it('is one of several that ask for a principal at the same time', async () => {
        const principal = unique('robot');
        const answers = await Promise.all(Array.from({ length: 5 }, () => create({ principal })));
        expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409]);
      });

      it('names a person, and so does the key that replaces it', async () => {
        const made = await create({ person: 'grace' });
        expect(made.body.person).toBe('grace');
        const rotated = await by('owner').post(`/v1/host/capstan/keys/${made.body.id}:rotate`);
        expect(rotated.body.person).toBe('grace');
        const { runId } = await waiting(new Api(host().url, made.body.key), [
          approval('gate', { excludeInitiator: true }),
        ]);
        const answer = await resolve(new Api(host().url, rotated.body.key), runId, 'gate', ACCEPT);
        expectRefusal(answer, 403, 'forbidden');
      });
    });
  },
  { apiKeys: keyRecords(KEYS_OF_ADA) },
);
