import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { verifyAuditFile } from '../../src/cli/audit-file.ts';
import type { Config } from '../../src/config.ts';
import { Api } from '../support/api.ts';
import { everythingAtRest } from '../support/at-rest.ts';
import { disarm } from '../support/audit-forger.ts';
import { type Bundle, isSignedWith, problemsOf } from '../support/audit-log.ts';
import { capstan } from '../support/command-line.ts';
import { freshFolder, migratedDatabase, readStore, writeStore } from '../support/database.ts';
import { node, register, unique, WORKFLOWS, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { type StoreKind, startHostWith, startTestHost, type TestHost } from '../support/host.ts';
import { governanceGate, resolve, waitingRun } from '../support/interrupts.ts';
import { keyRecords } from '../support/keys.ts';
import { type HostProcess, spawnHost } from '../support/process.ts';
import { loadSchemas } from '../support/schemas.ts';
import { onEachStore, STORES } from '../support/stores.ts';
import { until } from '../support/until.ts';

/**
 * Goal: the audit log has everything that somebody has to answer for, and nobody can change it unnoticed. Method: what
 * the host says of its log is compared with what a second reading of the protocol's rules finds, and the log is
 * tampered with where it lies, past the host.
 */

const AUDIT = '/v1/host/capstan/audit';
const VERIFY = '/v1/audit/verify';
const NOOP = 'conformance-noop';
const folder = freshFolder();
afterAll(() => folder.remove());

// biome-ignore lint/suspicious/noExplicitAny: JSON of the host
type Item = any;

/** Tenants with a log of their own, one for each way to tamper with it. */
const VICTIMS = Array.from({ length: 24 }, (_, index) => `victim-${index}`);
const MORE_KEYS = VICTIMS.map((tenant) => ({ key: `owner-of-${tenant}`, tenant, principal: 'ada', role: 'owner' }));

onEachStore(
  'the audit log',
  (host) => {
    const schemas = loadSchemas();
    const api = () => host().as('editor');

    describe('tells who did what', () => {
      it('runs that were started, cancelled, paused and resumed', async () => {
        const waiting = await register(api(), workflow([node('wait', 'core.delay', { config: { delayMs: 600_000 } })]));
        const runId = await api().run(waiting);
        const owner = host().as('owner');
        expect((await owner.post(`/v1/runs/${runId}:pause`, { reason: 'lunch' })).status).toBe(202);
        expect((await owner.post(`/v1/runs/${runId}:resume`)).status).toBeLessThan(300);
        expect((await api().post(`/v1/runs/${runId}/cancel`, { reason: 'enough' })).status).toBe(200);
        const items = (await itemsOf(api())).filter(({ target }: Item) => target === runId).reverse();
        expect(items.map(({ action, actor }: Item) => `${action} ${actor}`)).toEqual([
          'run.create editor-of-alpha',
          'run.pause owner-of-alpha',
          'run.resume owner-of-alpha',
          'run.cancel editor-of-alpha',
        ]);
        expect(items[0]).toMatchObject({ outcome: 'success', details: { workflowId: waiting } });
        expect(items[3].details).toMatchObject({ reason: 'enough' });
      });

      it('interrupts that were answered, gates that were opened, and who was not allowed to', async () => {
        const gate = governanceGate('gate', { requiredRole: 'reviewer', override: { requiredRole: 'owner' } });
        const id = await register(api(), workflow([gate]));
        const { runId } = await waitingRun(api(), id);
        expect((await resolve(api(), runId, 'gate', { decision: 'granted' })).status).toBe(403);
        expect(
          (await resolve(host().as('owner'), runId, 'gate', { decision: 'overridden', reason: 'fire' })).status,
        ).toBe(200);
        const items = (await itemsOf(api())).filter(({ target }: Item) => target === runId).reverse();
        expect(items.map(({ action, actor, outcome }: Item) => `${action} ${actor} ${outcome}`)).toEqual([
          'run.create editor-of-alpha success',
          'authorization.deny editor-of-alpha denied',
          'gate.override owner-of-alpha success',
          'interrupt.resolve owner-of-alpha success',
        ]);
        expect(items[2].details).toEqual({ gateId: 'gate', reason: 'fire' });
      });

      it('workflows that were registered, replaced and removed, once for each change', async () => {
        const definition = workflow([node('a')]);
        const path = `${WORKFLOWS}/${definition.id}`;
        await register(api(), definition);
        await register(api(), definition);
        expect((await api().request('PUT', path, { ...definition, name: 'Another name' })).status).toBe(200);
        expect((await api().request('DELETE', path)).status).toBe(204);
        expect((await api().request('DELETE', path)).status).toBe(404);
        const items = (await itemsOf(api())).filter(({ target }: Item) => target === definition.id).reverse();
        expect(items.map(({ action, details }: Item) => `${action} ${details?.version ?? ''}`)).toEqual([
          'workflow.register 1',
          'workflow.replace 2',
          'workflow.remove ',
        ]);
      });

      it('what was asked for without the scope, before the answer is out', async () => {
        expectRefusal(await host().as('viewer').get(VERIFY), 403, 'forbidden');
        const [item] = (await api().get(`${AUDIT}?action=authorization.deny&actor=viewer-of-alpha`)).body.items;
        expect(item).toMatchObject({
          outcome: 'denied',
          target: `GET ${VERIFY}`,
          details: { scopeRequired: 'audit:read', keyId: expect.stringMatching(/^key-/) },
        });
      });

      it('that a host has started, and that a key was used, once', async () => {
        await Promise.all(Array.from({ length: 5 }, () => host().as('reviewer').get('/v1/host/capstan/runs')));
        const used = await untilItems(api(), `${AUDIT}?action=key.used&actor=reviewer-of-alpha`);
        expect(used).toHaveLength(1);
        const started = (await api().get(`${AUDIT}?action=host.started`)).body.items;
        expect(started).toMatchObject([{ actor: 'host', details: { hostId: expect.stringMatching(/^host-/) } }]);
      });

      it('and no secret, nor anything that looks like one', async () => {
        const secret = 'sk-ant-api03-AUDITCANARYAUDITCANARYAUDITCANARY';
        const runId = await api().run(
          await register(api(), workflow([node('w', 'core.delay', { config: { delayMs: 600_000 } })])),
        );
        expect((await api().post(`/v1/runs/${runId}/cancel`, { reason: `it said ${secret}` })).status).toBe(200);
        const { text } = await api().get(`${AUDIT}?action=run.cancel`);
        expect(text).toContain('[REDACTED');
        expect(text).not.toContain('AUDITCANARY');
        const { dataFolder, databaseUrl } = host().config;
        expect(await everythingAtRest(dataFolder, databaseUrl)).not.toContain('AUDITCANARY');
      });
    });

    describe('is listed', () => {
      it('newest first, page by page, none twice and none left out', async () => {
        for (let count = 0; count < 5; count++) await ofVictim(host(), 'victim-23').run(NOOP);
        const victim = ofVictim(host(), 'victim-23');
        // That a key was used is told a moment later, with the time of its use: among what is listed here.
        await untilItems(victim, `${AUDIT}?action=key.used`);
        const all = await itemsOf(victim);
        const newestFirst = (a: Item, b: Item): number => b.at.localeCompare(a.at) || b.sequence - a.sequence;
        expect(all).toEqual(all.toSorted(newestFirst));
        expect(new Set(all.map(({ sequence }: Item) => sequence)).size).toBe(all.length);
        expect(await itemsOf(victim, '', 2)).toEqual(all);
        // What happened at about the same time may be chained in another order.
        const chained = all.toSorted((a: Item, b: Item) => b.sequence - a.sequence);
        for (const [index, item] of chained.slice(0, -1).entries()) expect(item.prevHash).toBe(chained[index + 1].hash);
      });

      it('by actor, action and time', async () => {
        const victim = ofVictim(host(), 'victim-22');
        for (let count = 0; count < 3; count++) await victim.run(NOOP);
        const all = await itemsOf(victim, '?action=run.create');
        expect(all).toHaveLength(3);
        expect(await itemsOf(victim, '?actor=ada&action=run.create')).toEqual(all);
        expect(await itemsOf(victim, '?actor=nobody')).toEqual([]);
        const { at } = all[1];
        const since = await itemsOf(victim, `?action=run.create&since=${at}`);
        const until = await itemsOf(victim, `?action=run.create&until=${at}`);
        expect(since.every((item: Item) => item.at >= at)).toBe(true);
        expect(until.every((item: Item) => item.at <= at)).toBe(true);
        expect(since.length + until.length).toBeGreaterThanOrEqual(4);
      });

      it.each(['limit=0', 'limit=x', 'cursor=bm9uZQ', 'since=yesterday', 'nonsense=1', 'actor='])(
        'not for %s',
        async (query) => {
          expectRefusal(await api().get(`${AUDIT}?${query}`), 400, 'validation_error');
        },
      );

      it('for its tenant alone, and to a key of a workspace as far as it concerns that', async () => {
        const inNorth = await host().as('workspace').run(NOOP);
        const mine = await host().as('test').run(NOOP);
        const targetsOf = async (reader: Api) => (await itemsOf(reader)).map(({ target }: Item) => target);
        expect(await targetsOf(api())).toContain(inNorth);
        expect(await targetsOf(host().as('workspace'))).toContain(inNorth);
        for (const target of await targetsOf(host().as('workspace')))
          expect([inNorth, expect.anything()]).toContainEqual(target);
        expect(
          (await itemsOf(host().as('workspace'))).every(({ actor }: Item) => actor === 'editor-of-alpha-north'),
        ).toBe(true);
        expect(await targetsOf(host().as('other'))).not.toContain(inNorth);
        expect(await targetsOf(api())).not.toContain(mine);
        expect(await targetsOf(host().as('test'))).toContain(mine);
        expectRefusal(await host().as('workspace').get(`${AUDIT}/export`), 403, 'forbidden');
        expect((await host().as('workspace').get(VERIFY)).body.chainValid).toBe(true);
      });

      it.each([AUDIT, `${AUDIT}/export`, VERIFY])('to nobody without the scope: %s', async (path) => {
        expectRefusal(await host().as('viewer').get(path), 403, 'forbidden');
        expectRefusal(await host().anonymous.get(path), 401, 'unauthenticated');
      });
    });

    describe('is verified', () => {
      it('as the profile that is advertised says', async () => {
        const { body } = await host().anonymous.get('/.well-known/openwop');
        const { profiles, auditLogIntegrity } = body.auth;
        expect(profiles).toContain('openwop-audit-log-integrity');
        expect(auditLogIntegrity).toEqual({
          hashChain: true,
          checkpointSignatureAlgorithm: 'ed25519',
          checkpointPublicKey: expect.any(String),
          checkpointIntervalEntries: 1_000,
          checkpointIntervalSeconds: 300,
        });
        const answer = await api().get(`${VERIFY}?fromSeq=0&toSeq=100`);
        expect(answer.status).toBe(200);
        expect(schemas.auditVerify(answer.body)).toEqual([]);
        expect(answer.body).toMatchObject({ fromSeq: 0, toSeq: 100, chainValid: true, anomalies: [] });
        expect(answer.body.checkpoints.length).toBeGreaterThan(0);
        for (const { merkleRoot, signature } of answer.body.checkpoints) {
          expect(isSignedWith(auditLogIntegrity.checkpointPublicKey, merkleRoot, signature)).toBe(true);
        }
      });

      it('from the beginning, even of a log to which nothing has happened', async () => {
        const { body } = await ofVictim(host(), 'victim-21').get(VERIFY);
        expect(body).toMatchObject({ fromSeq: 0, chainValid: true, anomalies: [] });
        expect(body.checkpoints.length).toBeGreaterThan(0);
      });

      it('to the end where that is not said, and past it', async () => {
        const { body: whole } = await api().get(VERIFY);
        const [newest] = await itemsOf(api());
        expect(whole.fromSeq).toBe(0);
        expect(newest.sequence).toBeLessThanOrEqual(whole.toSeq + 1);
        const { body: beyond } = await api().get(`${VERIFY}?fromSeq=900000&toSeq=1000000`);
        expect(beyond).toEqual({
          fromSeq: 900_000,
          toSeq: 1_000_000,
          chainValid: true,
          checkpointsValid: true,
          checkpoints: [],
          anomalies: [],
        });
      });

      it.each(['fromSeq=-1', 'fromSeq=x', 'toSeq=1.5', 'fromSeq=5&toSeq=4', 'toSeq=1e3', 'until=5'])(
        'not for %s',
        async (query) => {
          expectRefusal(await api().get(`${VERIFY}?${query}`), 400, 'validation_error');
          expectRefusal(await api().get(`${AUDIT}/export?${query}`), 400, 'validation_error');
        },
      );
    });

    describe('is exported', () => {
      it('so that anybody can check it, with every entry signed for', async () => {
        for (let count = 0; count < 4; count++) await api().run(NOOP);
        const bundle = await exported(api());
        expect(problemsOf(bundle)).toEqual([]);
        const { body } = await host().anonymous.get('/.well-known/openwop');
        const { publicKeyPEM } = bundle.signingKeys[0]!;
        expect(publicKeyPEM.replace(/-----[^-]*-----|\s/g, '')).toBe(body.auth.auditLogIntegrity.checkpointPublicKey);
        const items = await itemsOf(api());
        const last = bundle.entries.at(-1);
        expect(items.find(({ sequence }: Item) => sequence === last.atSequence)).toMatchObject({ hash: last.hash });
      });

      it('in parts, each of which can be checked by itself', async () => {
        const { toSeq, checkpoints } = await exported(api());
        const [first] = checkpoints;
        const part = await exported(api(), `?fromSeq=${first!.atSequence + 1}&toSeq=${toSeq}`);
        expect(problemsOf(part)).toEqual([]);
        expect(part.fromSeq).toBe(first!.atSequence + 1);
        const inside = await exported(api(), `?fromSeq=${toSeq}&toSeq=${toSeq}`);
        expect(problemsOf(inside)).toEqual([]);
        expect(inside.entries.map(({ atSequence }) => atSequence)).toContain(toSeq);
        const beyond = await exported(api(), '?fromSeq=1000000');
        expect(beyond.entries).toEqual([]);
        expect((await verifyAuditFile(saved(beyond))).result.chainValid).toBe(true);
      });
    });

    describe('that was tampered with where it lies', () => {
      // That a key was used is told a moment later: not while somebody tampers.
      beforeAll(async () => {
        const victims = VICTIMS.map((tenant) => ofVictim(host(), tenant));
        await Promise.all(victims.map((victim) => untilItems(victim, `${AUDIT}?action=key.used`)));
      });

      const ways: [string, (tenant: string) => string[], readonly string[]][] = [
        [
          'an actor',
          (t) => [update(t, 3, `actor = 'mallory'`)],
          ['hash-mismatch 3', 'chain-break 4', 'merkle-mismatch'],
        ],
        ['an action', (t) => [update(t, 3, `action = 'run.createx'`)], ['hash-mismatch 3', 'chain-break 4']],
        ['a target', (t) => [update(t, 3, 'target = NULL')], ['hash-mismatch 3']],
        ['a time', (t) => [update(t, 3, 'at = at + 1')], ['hash-mismatch 3']],
        ['an outcome', (t) => [update(t, 3, `outcome = 'denied'`)], ['hash-mismatch 3']],
        ['a workspace', (t) => [update(t, 3, `workspace = 'north'`)], ['hash-mismatch 3']],
        ['details', (t) => [update(t, 3, `details = replace(details, 'noop', 'nope')`)], ['hash-mismatch 3']],
        ['details that are no JSON any more', (t) => [update(t, 3, `details = '{'`)], ['hash-mismatch 3']],
        ['a hash', (t) => [update(t, 3, `hash = '${'0'.repeat(64)}'`)], ['hash-mismatch 3']],
        ['a pointer', (t) => [update(t, 3, 'prev_hash = NULL')], ['hash-mismatch 3', 'chain-break 3']],
        ['an entry that is gone', (t) => [remove(t, '= 3')], ['missing-entry 3', 'merkle-mismatch']],
        ['the first entry', (t) => [remove(t, '= 1')], ['missing-entry 1', 'merkle-mismatch']],
        [
          'the last entry',
          (t) => [remove(t, `= (SELECT MAX(sequence) FROM audit_entries WHERE tenant = '${t}')`)],
          ['missing-entry'],
        ],
        [
          'two entries that changed places',
          (t) => [update(t, 3, 'sequence = -1'), update(t, 4, 'sequence = 3'), update(t, -1, 'sequence = 4')],
          ['hash-mismatch 3', 'hash-mismatch 4', 'chain-break 3', 'merkle-mismatch'],
        ],
        [
          'an end that was cut off, with the account of it set back',
          (t) => [remove(t, '>= 4'), `UPDATE audit_heads SET sequence = 3 WHERE tenant = '${t}'`],
          ['missing-entry 4', 'merkle-mismatch'],
        ],
        ['a root', (t) => [sign(t, `merkle_root = '${'0'.repeat(64)}'`)], ['merkle-mismatch', 'signature-invalid']],
        [
          'a signature',
          (t) => [sign(t, `signature = '${Buffer.alloc(64, 7).toString('base64')}'`)],
          ['signature-invalid'],
        ],
        [
          'the log of somebody else in its place',
          (t) => [
            `DELETE FROM audit_entries WHERE tenant = '${t}'`,
            `DELETE FROM audit_checkpoints WHERE tenant = '${t}'`,
            `INSERT INTO audit_entries SELECT '${t}', sequence, workspace, at, actor, action, target, outcome, details,
               prev_hash, hash FROM audit_entries WHERE tenant = 'victim-20'`,
            `INSERT INTO audit_checkpoints SELECT '${t}', at_sequence, checkpoint_id, merkle_root, signature, key_id,
               signed_at FROM audit_checkpoints WHERE tenant = 'victim-20'`,
          ],
          ['hash-mismatch 1', 'merkle-mismatch'],
        ],
      ];

      it.each(ways.map(([what, statements, found], index) => ({ what, statements, found, tenant: VICTIMS[index]! })))(
        'tells: $what',
        async ({ statements, found, tenant }) => {
          await makeLog(ofVictim(host(), tenant));
          await attack(host().config, statements(tenant));
          const { body, text } = await ofVictim(host(), tenant).get(VERIFY);
          expect(body.chainValid, text).toBe(false);
          const kinds = body.anomalies.map(({ kind, atSeq }: Item) => `${kind} ${atSeq}`).join('\n');
          for (const finding of found) expect(kinds).toContain(finding);
          expectShapes(body.anomalies);
          // Whoever only has the file sees the same.
          const { anomalies } = (await verifyAuditFile(saved(await exported(ofVictim(host(), tenant))))).result;
          const offlineKinds = anomalies.map(({ kind, atSeq }) => `${kind} ${atSeq}`).join('\n');
          for (const finding of found) expect(offlineKinds).toContain(finding);
          expectShapes(anomalies);
        },
      );

      it('does not keep others from going on, nor later entries from being written', async () => {
        const victim = ofVictim(host(), 'victim-19');
        await makeLog(victim);
        await attack(host().config, [update('victim-19', 3, `actor = 'mallory'`)]);
        const runId = await victim.run(NOOP);
        expect((await itemsOf(victim)).map(({ target }: Item) => target)).toContain(runId);
        expect((await victim.get(VERIFY)).body.chainValid).toBe(false);
        expect((await api().get(VERIFY)).body.chainValid).toBe(true);
      });
    });
  },
  { apiKeys: keyRecords(MORE_KEYS) },
);

onEachStore(
  'every request',
  (host) => {
    it('is in the audit log where the operator wants it there', async () => {
      const api = host().as('owner');
      await host().as('editor').get('/v1/runs/run-that-is-not-there?secret=hk_live_0123456789abcdef0123456789abcdef');
      const [item] = await untilItems(api, `${AUDIT}?action=request&actor=editor-of-alpha`);
      expect(item).toMatchObject({
        target: 'GET /v1/runs/{runId}',
        outcome: 'failed',
        details: {
          keyId: expect.any(String),
          scope: 'runs:read',
          status: expect.any(Number),
          latencyMs: expect.any(Number),
        },
      });
      expect((await api.get(VERIFY)).body.chainValid).toBe(true);
    });
  },
  { auditRequests: true },
);

describe('several hosts on one PostgreSQL', () => {
  it('seal into one chain, and each can show it', async () => {
    const first = await startTestHost('postgres', inject('postgresUrl'));
    const others = [await first.another(), await first.another()];
    const hosts = [first, ...others];
    const started = await Promise.all(
      Array.from({ length: 60 }, (_, index) => hosts[index % hosts.length]!.as('editor').run(NOOP)),
    );
    const bundles = await Promise.all(hosts.map((host) => exported(host.as('editor'))));
    for (const bundle of bundles) {
      expect(problemsOf(bundle)).toEqual([]);
      const created = bundle.entries.filter(({ action }) => action === 'run.create').map(({ target }) => target);
      expect(created.sort()).toEqual([...started].sort());
    }
    for (const host of [...others, first]) await host.stop();
  });
});

describe('a host that is stopped', () => {
  it('writes down what it has gathered before it lets go of the store', async () => {
    const host = await startTestHost('postgres', inject('postgresUrl'), { auditRequests: true });
    const other = await host.another();
    expect((await host.as('reviewer').get('/v1/host/capstan/runs')).status).toBe(200);
    await host.stop();
    const items = await itemsOf(other.as('editor'), '?actor=reviewer-of-alpha');
    expect(items.map(({ action }) => action).sort()).toEqual(['key.used', 'request']);
    await other.stop();
  });
});

describe.each(STORES)('a host on %s that is killed', (kind) => {
  it('has written down whatever it acknowledged, and seals it when it comes back, with a new key too', async () => {
    const place = await freshPlace(kind);
    const host = await spawnHost(place);
    const { body: before } = await host.as('editor').get('/.well-known/openwop');
    expect((await host.as('editor').get(VERIFY)).body.checkpoints).toHaveLength(1);
    const runId = await host.as('editor').run(NOOP);
    await kill(host);
    const next = await startHostWith({ ...place, CAPSTAN_AUDIT_KEY: 'after-the-crash' });
    await sealed(configOf(place));
    const bundle = await exported(next.as('editor'));
    expect(problemsOf(bundle)).toEqual([]);
    expect(bundle.entries.filter(({ target }) => target === runId).map(({ action }) => action)).toEqual(['run.create']);
    expect(bundle.entries.filter(({ action }) => action === 'host.started')).toHaveLength(2);
    const { body: after } = await next.as('editor').get('/.well-known/openwop');
    const key = after.auth.auditLogIntegrity.checkpointPublicKey;
    expect(key).not.toBe(before.auth.auditLogIntegrity.checkpointPublicKey);
    expect((await next.as('editor').get(VERIFY)).body).toMatchObject({ chainValid: true, anomalies: [] });
    // Trusting the new key alone, what the old one signed is not trusted.
    expect((await verifyFile(bundle)).code).toBe(0);
    const { code, output } = await verifyFile(bundle, '--key', key, '--json');
    expect(code).toBe(1);
    const [{ atSequence: atSeq } = {}] = bundle.checkpoints;
    expect(JSON.parse(output).anomalies).toMatchObject([{ kind: 'signature-invalid', atSeq }]);
    await next.stop();
  });
});

describe('capstan audit verify', () => {
  it('shows people what it found, and ends accordingly', async () => {
    const host = await startTestHost('sqlite', undefined);
    await makeLog(host.as('editor'));
    const bundle = await exported(host.as('editor'));
    await host.stop();
    const good = await verifyFile(bundle);
    expect(good.code).toBe(0);
    expect(good.output).toMatch(/^Tenant +alpha$/m);
    expect(good.output).toMatch(new RegExp(`^Entries +1 to ${bundle.toSeq}$`, 'm'));
    expect(good.output).toMatch(/^Result +valid$/m);
    // Another order of its members and another layout say the same.
    const { entries, ...rest } = bundle;
    const path = join(folder.path, 'pretty.json');
    writeFileSync(path, JSON.stringify({ entries, ...rest }, null, 2));
    expect((await capstan(['audit', 'verify', path, '--json'])).output).toContain('"chainValid":true');
    const edited = {
      ...bundle,
      entries: bundle.entries.map((entry) =>
        entry.atSequence === 2 ? { ...entry, actor: 'mallory\u001b[2J' } : entry,
      ),
    };
    const bad = await verifyFile(edited);
    expect(bad.code).toBe(1);
    expect(bad.output).toMatch(/^Result +TAMPERED WITH/m);
    expect(bad.output).toMatch(/^2 +hash-mismatch/m);
    expect(bad.output).not.toContain('\u001b');
  });

  it.each([
    ['a file that is not there', ['nowhere.json'], 2],
    ['no file', [], 2],
    ['a key that is none', ['package.json', '--key', 'nonsense'], 2],
    ['JSON of another kind', ['package.json'], 1],
    ['no JSON', ['README.md'], 1],
  ] as const)('refuses %s', async (_what, args, code) => {
    const end = await capstan(['audit', 'verify', ...args]);
    expect(end.code).toBe(code);
    expect(end.output).not.toContain('at file:');
  });
});

function ofVictim(host: TestHost, tenant: string): Api {
  return new Api(host.url, `owner-of-${tenant}`);
}

/** Seven entries at least, of which the first five are signed for. */
async function makeLog(api: Api): Promise<void> {
  for (let count = 0; count < 4; count++) await api.run(NOOP);
  await exported(api);
  for (let count = 0; count < 2; count++) await api.run(NOOP);
  await api.get(VERIFY);
}

/** All items, newest first. */
async function itemsOf(api: Api, query = '', limit = 200): Promise<Item[]> {
  const items: Item[] = [];
  let cursor = '';
  for (;;) {
    const { body, status, text } = await api.get(`${AUDIT}${query === '' ? '?' : `${query}&`}limit=${limit}${cursor}`);
    expect(status, text).toBe(200);
    items.push(...body.items);
    if (body.nextCursor === undefined) return items;
    cursor = `&cursor=${body.nextCursor}`;
  }
}

/** What the edge tells is written a moment later: waits for it by asking for it. */
const untilItems = (api: Api, path: string): Promise<Item[]> =>
  until(
    async () => (await api.get(path)).body.items as Item[],
    ({ length }) => length > 0,
  );

/** Waits until everything is in a chain, without asking the host for it. */
async function sealed(config: Config): Promise<void> {
  const pending = () => readStore<{ count: number }>(config, 'SELECT COUNT(*) AS count FROM audit_pending');
  await until(pending, ([row]) => Number(row!.count) === 0);
}

async function exported(api: Api, query = ''): Promise<Bundle> {
  const { status, body, text, headers } = await api.get(`${AUDIT}/export${query}`);
  expect(status, text).toBe(200);
  expect(headers.get('content-type')).toMatch(/^application\/json/);
  expect(body).toMatchObject({
    bundleVersion: '1',
    exportedAt: expect.any(String),
    host: { name: 'capstan', version: expect.any(String) },
    signingKey: { keyId: expect.any(String), algorithm: 'ed25519', publicKeyPEM: expect.any(String) },
  });
  return body;
}

function saved(bundle: Bundle): string {
  const path = join(folder.path, `${unique('export')}.json`);
  writeFileSync(path, JSON.stringify(bundle));
  return path;
}

/** As somebody would who has nothing but the file. */
function verifyFile(bundle: Bundle, ...options: string[]) {
  return capstan(['audit', 'verify', saved(bundle), ...options]);
}

/** Whoever owns the database can take the guards away first. */
async function attack(config: Config, statements: readonly string[]): Promise<void> {
  await writeStore(config, [...disarm(config), ...statements]);
}

function update(tenant: string, sequence: number, set: string): string {
  return `UPDATE audit_entries SET ${set} WHERE tenant = '${tenant}' AND sequence = ${sequence}`;
}

function remove(tenant: string, which: string): string {
  return `DELETE FROM audit_entries WHERE tenant = '${tenant}' AND sequence ${which}`;
}

/** The last checkpoint. */
function sign(tenant: string, set: string): string {
  return `UPDATE audit_checkpoints SET ${set} WHERE tenant = '${tenant}'
          AND at_sequence = (SELECT MAX(at_sequence) FROM audit_checkpoints WHERE tenant = '${tenant}')`;
}

const SHAPES: Record<string, readonly string[]> = {
  'chain-break': ['atSeq', 'expectedPrevHash', 'actualPrevHash'],
  'hash-mismatch': ['atSeq'],
  'missing-entry': ['atSeq'],
  'merkle-mismatch': ['atSeq', 'checkpoint'],
  'signature-invalid': ['atSeq', 'checkpoint'],
};

/** Each kind has its members and no others. */
function expectShapes(anomalies: readonly Item[]): void {
  for (const { kind, detail: _, ...members } of anomalies) {
    expect(Object.keys(members).sort()).toEqual([...SHAPES[kind]!].sort());
  }
}

async function freshPlace(kind: StoreKind): Promise<Record<string, string>> {
  return kind === 'sqlite'
    ? { CAPSTAN_DATA: join(folder.path, unique('data')) }
    : { DATABASE_URL: await migratedDatabase(inject('postgresUrl')), CAPSTAN_LEASE_MS: '600' };
}

function configOf({ CAPSTAN_DATA, DATABASE_URL }: Record<string, string>): Config {
  return { dataFolder: CAPSTAN_DATA, databaseUrl: DATABASE_URL } as Config;
}

async function kill(host: HostProcess): Promise<void> {
  host.signal('SIGKILL');
  await host.exit;
}
