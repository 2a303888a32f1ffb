import { expect, it } from 'vitest';
import { canonicalJson } from '../../src/protocol/format/json.ts';
import { sha256Hex } from '../../src/system/digest.ts';
import { type Answer, Api } from '../support/api.ts';
import { writeStore } from '../support/database.ts';
import { register, unique, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { approval, eventsOf, governanceGate, resolve, waitingRun } from '../support/interrupts.ts';
import { keyRecords } from '../support/keys.ts';
import { onEachStore } from '../support/stores.ts';

/** A stored answer belongs to the principal that got it, and is given only to a credential that may still get it. */

const LESS = {
  key: 'owner-with-less',
  tenant: 'alpha',
  principal: 'owner-of-alpha',
  scopes: ['runs:read', 'approvals:respond'],
};
const GRANT = { decision: 'granted' };

onEachStore(
  'a stored answer',
  (host) => {
    const waiting = async (...nodes: Parameters<typeof workflow>[0]): Promise<Answer['body']> =>
      waitingRun(host().as('editor'), await register(host().as('editor'), workflow(nodes)));

    it('to a vote does not swallow the vote of another approver with the same key', async () => {
      const { runId } = await waiting(governanceGate('gate', { requiredRole: 'reviewer', quorum: 2 }));
      const key = { 'idempotency-key': unique('key') };
      for (const who of ['owner', 'reviewer'] as const) {
        const answer = await resolve(host().as(who), runId, 'gate', GRANT, key);
        expect({ status: answer.status, replayed: answer.headers.get('openwop-idempotent-replay') }).toEqual({
          status: 200,
          replayed: null,
        });
      }
      expect((await host().as('editor').ended(runId)).status).toBe('completed');
      expect(await eventsOf(host().as('editor'), runId, 'approval.granted')).toHaveLength(2);
    });

    it('is not for somebody who may not ask: 403 stays 403', async () => {
      const { runId } = await waiting(approval('gate', { approversList: ['owner-of-alpha'], requiredApprovals: 2 }));
      const key = { 'idempotency-key': unique('key') };
      const accept = { action: 'accept' };
      expect((await resolve(host().as('owner'), runId, 'gate', accept, key)).status).toBe(200);
      expectRefusal(await resolve(host().as('reviewer'), runId, 'gate', accept, key), 403, 'forbidden');
    });

    it('is not for another credential of the same principal that has fewer rights', async () => {
      const { runId } = await waiting(governanceGate('gate', { requiredRole: 'owner' }));
      const key = { 'idempotency-key': unique('key') };
      const first = await resolve(host().as('owner'), runId, 'gate', GRANT, key);
      expect(first.status).toBe(200);
      const lesser = new Api(host().url, LESS.key);
      expectRefusal(await resolve(lesser, runId, 'gate', GRANT, key), 403, 'forbidden');
      const again = await resolve(host().as('owner'), runId, 'gate', GRANT, key);
      expect([again.status, again.text]).toEqual([200, first.text]);
      expect(again.headers.get('openwop-idempotent-replay')).toBe('true');
    });

    it('of an earlier release still answers a retry, so that nothing is done twice after an upgrade', async () => {
      const request = { workflowId: 'conformance-noop', tags: [unique('tag')] };
      const body = {
        runId: 'run-00000000000000000000ab',
        status: 'pending',
        eventsUrl: `${host().url}/v1/runs/x/events`,
      };
      const key = unique('key');
      const recordKey = sha256Hex(['alpha', 'POST /v1/runs', key].join('\n'));
      const digest = sha256Hex(canonicalJson({ params: {}, query: {}, body: request }));
      await writeStore(host().config, [
        `INSERT INTO idempotency (record_key, digest, status, body, headers, expires_at)
         VALUES ('${recordKey}', '${digest}', 201, '${JSON.stringify(body)}', NULL, ${Date.now() + 60_000})`,
      ]);
      const answer = await host().as('editor').post('/v1/runs', request, { 'idempotency-key': key });
      expect({ status: answer.status, body: answer.body }).toEqual({ status: 201, body });
      expect(answer.headers.get('openwop-idempotent-replay')).toBe('true');
      const { items } = (await host().as('editor').get(`/v1/host/capstan/runs?tag=${request.tags[0]}`)).body;
      expect(items).toEqual([]);
    });
  },
  { apiKeys: keyRecords([LESS]) },
);
