import { generateKeyPairSync, sign } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import { type Answer, Api } from '../support/api.ts';
import { freshFolder } from '../support/database.ts';
import { unique, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { integrityOf, RegistryPages } from '../support/pack-registry.ts';
import { loadSchemas } from '../support/schemas.ts';
import { onEachStore, type Scenarios } from '../support/stores.ts';

/** execution.md 5.5 and 5.8, learning.md 5.2: packs of workflow chains, over the wire. */

type Body = Answer['body'];

const PACKS = '/v1/host/capstan/packs';
const EXPAND = '/v1/host/sample/workflow-chain:expand';
const schemas = loadSchemas();
const folder = freshFolder();
afterAll(() => folder.remove());
const { publicKey, privateKey } = generateKeyPairSync('ed25519');

const SAID = { type: 'connection', nodeId: 'say', outputKey: 'input' };

const chain = (more: object = {}): Body => ({
  chainId: 'vendor.acme.greet',
  version: '1.0.0',
  label: 'Greet',
  description: 'Hands a greeting from one node to the next',
  parameters: {
    type: 'object',
    properties: { who: { type: 'string', minLength: 1 }, extras: { type: 'array' } },
    required: ['who'],
  },
  dag: {
    nodes: [
      { id: 'say', typeId: 'core.identity', inputs: { input: 'Hello {{params.who}}', extras: '{{params.extras}}' } },
      { id: 'hear', typeId: 'core.identity', inputs: { heard: SAID } },
    ],
    edges: [{ from: 'say.output', to: 'hear.input' }],
  },
  ...more,
});
const pack = (more: object = {}): Body => ({
  name: `vendor.acme.${unique('greetings')}`,
  version: '1.0.0',
  kind: 'workflow-chain',
  engines: { openwop: '>=1.0.0 <2.0.0' },
  chains: [chain()],
  ...more,
});
const signatureOf = (file: string, key = { publicKey, privateKey }): Body => ({
  algorithm: 'ed25519',
  publicKey: key.publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
  value: sign(null, Buffer.from(file), key.privateKey).toString('base64'),
});
const bareKey = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('base64');

const install = (api: Api, body: Body, headers: Record<string, string> = {}): Promise<Answer> =>
  api.post(PACKS, body, headers);
const installed = async (api: Api, manifest: Body): Promise<Body> => {
  const answer = await install(api, { manifest });
  expect(answer.status, answer.text).toBe(201);
  return answer.body;
};
const uninstall = (api: Api, name: string, headers: Record<string, string> = {}): Promise<Answer> =>
  api.request('DELETE', `${PACKS}/${name}`, undefined, headers);
const expand = (api: Api, { name }: Body, more: object = {}): Promise<Answer> =>
  api.post(EXPAND, { packName: name, chainId: 'vendor.acme.greet', parameters: { who: 'Ada' }, ...more });
const versionOf = async (api: Api, { name }: Body): Promise<string> => (await expand(api, { name })).body.packVersion;

const withFolder = (scenarios: Scenarios): void => onEachStore('packs', scenarios, { packFolder: folder.path });

withFolder((host) => {
  const api = (): Api => host().as('reviewer');

  it('are advertised for what they are', async () => {
    const { body } = await host().anonymous.get('/.well-known/openwop');
    expect(body.workflowChainPacks).toEqual({ supported: true });
    expect(schemas.discovery(body)).toEqual([]);
  });

  describe('are installed', () => {
    it('from what a request brings, and shown with where they come from', async () => {
      const manifest = pack({
        description: 'Greetings',
        chains: [chain(), chain({ chainId: 'hidden', internal: true })],
      });
      const answer = await install(api(), { manifest });
      expect(answer.status, answer.text).toBe(201);
      expect(answer.headers.get('location')).toBe(`${PACKS}/${manifest.name}`);
      const shown = {
        name: manifest.name,
        version: '1.0.0',
        kind: 'workflow-chain',
        description: 'Greetings',
        chains: [{ chainId: 'vendor.acme.greet', version: '1.0.0', label: 'Greet', description: chain().description }],
        agents: [],
        integrity: integrityOf(JSON.stringify(manifest)),
        shared: false,
        provenance: { source: 'file', installedBy: 'reviewer-of-alpha', installedAt: expect.any(String) },
      };
      expect(answer.body).toEqual(shown);
      const { body } = await api().get(`${PACKS}/${manifest.name}`);
      expect(body).toEqual({ ...shown, manifest, file: JSON.stringify(manifest) });
    });

    it('to the letter, signed, and checked', async () => {
      const manifest = pack();
      expect(schemas.chainPack(manifest)).toEqual([]);
      const file = `${JSON.stringify(manifest, null, 4)}\n\n`;
      const answer = await install(api(), { file, integrity: integrityOf(file), signature: signatureOf(file) });
      expect(answer.status, answer.text).toBe(201);
      expect(answer.body.provenance.signature).toEqual({ ...signatureOf(file), publicKey: bareKey });
      expect((await api().get(`${PACKS}/${manifest.name}`)).body.file).toBe(file);
    });

    it('not when they are not what was announced', async () => {
      const manifest = pack();
      const file = JSON.stringify(manifest);
      const other = file.replace('Greet', 'Great');
      const refusals: [Body, string][] = [
        [{ file, integrity: integrityOf(other) }, 'pack_integrity_failure'],
        [{ file, signature: signatureOf(other) }, 'pack_signature_invalid'],
        [{ file, signature: { ...signatureOf(file), publicKey: 'bm9uZQ==' } }, 'pack_signature_invalid'],
        [{ file: `${file.slice(0, -1)}` }, 'invalid_manifest'],
        [{ file: `{"__proto__":1,${file.slice(1)}` }, 'invalid_manifest'],
        [{ file: `${file}${' '.repeat(262_144)}` }, 'invalid_manifest'],
        [{ manifest, file }, 'validation_error'],
        [{}, 'validation_error'],
        [{ manifest, surprise: 1 }, 'validation_error'],
      ];
      for (const [body, code] of refusals) expectRefusal(await install(api(), body), 400, code);
      expectRefusal(await api().get(`${PACKS}/${manifest.name}`), 404, 'not_found');
    });

    it('not when their manifest is wrong, and the place is told', async () => {
      const answer = await install(api(), { manifest: pack({ chains: [chain({ dag: { nodes: [{ id: 'x' }] } })] }) });
      expectRefusal(answer, 400, 'invalid_manifest');
      expect(answer.body.details.path).toBe('/chains/0/dag/nodes/0/typeId');
      expectRefusal(await install(api(), { manifest: pack({ nodes: [] }) }), 400, 'pack_kind_invalid');
      const { chains: _chains, kind: _kind, ...rest } = pack();
      const nodes = { ...rest, nodes: [{}], runtime: { language: 'javascript', entry: 'index.js' } };
      expectRefusal(await install(api(), { manifest: nodes }), 422, 'capability_required');
    });

    it('once, however often it is asked for', async () => {
      const manifest = pack();
      const headers = { 'idempotency-key': unique('key') };
      const first = await install(api(), { manifest }, headers);
      expect(first.status).toBe(201);
      expect((await install(api(), { manifest }, headers)).text).toBe(first.text);
      const again = await install(api(), { manifest });
      expect({ status: again.status, body: again.body }).toEqual({ status: 200, body: first.body });
      const entries = (await api().get(`/v1/host/capstan/audit?limit=200&action=pack.install`)).body.items;
      expect(entries.filter(({ target }: Body) => target === manifest.name)).toHaveLength(1);
    });

    it('by one of many who want different things under one name', async () => {
      const name = `vendor.acme.${unique('contested')}`;
      const answers = await Promise.all(
        Array.from({ length: 6 }, (_, index) => install(api(), { manifest: pack({ name, description: `${index}` }) })),
      );
      expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
      for (const answer of answers.filter(({ status }) => status !== 201)) {
        expectRefusal(answer, 409, 'version_conflict');
      }
    });

    it('by those who may, for those who are there', async () => {
      const manifest = pack();
      const refused = await install(host().as('editor'), { manifest });
      expectRefusal(refused, 403, 'forbidden');
      expect(refused.body.details).toEqual({ scopeRequired: 'packs:publish' });
      await installed(api(), manifest);
      expect((await expand(host().as('viewer'), manifest)).status).toBe(200);
      expect((await expand(host().as('workspace'), manifest)).status).toBe(200);
      expectRefusal(await host().as('other').get(`${PACKS}/${manifest.name}`), 404, 'not_found');
      expectRefusal(await expand(host().as('other'), manifest), 404, 'pack_not_found');
      expectRefusal(await uninstall(host().as('other'), manifest.name), 404, 'not_found');
      expectRefusal(await expand(host().as('test'), manifest), 404, 'pack_not_found');
      const listed = (await host().as('other').get(`${PACKS}?limit=200`)).body.items;
      expect(listed.map(({ name }: Body) => name)).not.toContain(manifest.name);
    });
  });

  describe('come from a registry', () => {
    const served = async (test: (registry: RegistryPages, url: string) => Promise<void>): Promise<void> => {
      const registry = new RegistryPages();
      const { url, close } = await registry.serve();
      await test(registry, url).finally(close);
    };

    it('checked and signed, and are filled in like any other', () =>
      served(async (registry, url) => {
        const manifest = pack();
        const archive = registry.publish(manifest);
        const answer = await install(api(), { registry: url, name: manifest.name });
        expect(answer.status, answer.text).toBe(201);
        expect(answer.body).toMatchObject({
          integrity: integrityOf(archive),
          provenance: {
            source: 'registry',
            registry: url,
            resolved: `${url}/v1/packs/${manifest.name}/-/1.0.0.tgz`,
            signature: { publicKey: registry.publicKey },
          },
        });
        expect(await versionOf(api(), manifest)).toBe('1.0.0');
        const { packs } = (await api().get(`${PACKS}/lockfile`)).body;
        const locked = packs.find(({ name }: Body) => name === manifest.name);
        const again = { registry: url, name: locked.name, version: locked.version, integrity: locked.integrity };
        expect((await install(api(), again)).status).toBe(200);
      }));

    it('that is a folder of the host', async () => {
      const manifest = pack();
      const registry = new RegistryPages();
      const archive = registry.publish(manifest);
      registry.keepIn(folder.path);
      const answer = await install(api(), { registry: 'folder', name: manifest.name });
      expect(answer.status, answer.text).toBe(201);
      expect(answer.body).toMatchObject({ integrity: integrityOf(archive), provenance: { registry: 'folder' } });
      expectRefusal(await install(api(), { registry: 'folder', name: pack().name }), 404, 'pack_not_found');
    });

    it('not when somebody has been at them', () =>
      served(async (registry, url) => {
        const manifest = pack();
        registry.publish(manifest);
        registry.pages.set(`/v1/packs/${manifest.name}/-/1.0.0.sig`, registry.sign('something else'));
        const request = { registry: url, name: manifest.name };
        expectRefusal(await install(api(), request), 400, 'pack_signature_invalid');
        registry.say(`/meta/${manifest.name}`, { versions: [] });
        expectRefusal(await install(api(), request), 404, 'pack_version_not_found');
        const other = pack();
        registry.publish(other);
        const path = `/v1/packs/${manifest.name}/-/1.0.0`;
        for (const end of ['tgz', 'sig']) {
          registry.pages.set(`${path}.${end}`, registry.pages.get(`/v1/packs/${other.name}/-/1.0.0.${end}`)!);
        }
        registry.pages.set(`/meta/${manifest.name}`, registry.pages.get(`/meta/${other.name}`)!);
        expectRefusal(await install(api(), request), 400, 'manifest_mismatch');
        expectRefusal(await api().get(`${PACKS}/${manifest.name}`), 404, 'not_found');
      }));

    it('that may be asked, and that is named with what goes with it', async () => {
      const name = 'vendor.acme.greetings';
      for (const body of [
        { registry: 'https://10.0.0.1', name },
        { registry: 'file:///etc', name },
        { registry: 'https://packs.example' },
        { registry: 'https://packs.example', name, manifest: pack() },
        { registry: 'https://packs.example', name, signature: signatureOf('') },
        { manifest: pack(), version: '1.0.0' },
      ]) {
        expectRefusal(await install(api(), body), 400, 'validation_error');
      }
      const gone = await install(api(), { registry: 'http://127.0.0.1:9', name });
      expectRefusal(gone, 503, 'pack_registry_unreachable');
    });
  });

  describe('have versions', () => {
    it('that never change, of which the last one installed is in use', async () => {
      const manifest = pack();
      await installed(api(), manifest);
      await installed(api(), { ...manifest, version: '2.0.0' });
      expect(await versionOf(api(), manifest)).toBe('2.0.0');
      expect((await expand(api(), manifest, { version: '1.0.0' })).body.packVersion).toBe('1.0.0');
      expectRefusal(await expand(api(), manifest, { version: '3.0.0' }), 404, 'pack_not_found');
      const changed = await install(api(), { manifest: { ...manifest, description: 'Something else' } });
      expectRefusal(changed, 409, 'version_conflict');
      expect(await versionOf(api(), manifest)).toBe('2.0.0');
    });

    it('of which the one before is in use again once the last one is gone', async () => {
      const manifest = pack();
      await installed(api(), manifest);
      await installed(api(), { ...manifest, version: '2.0.0' });
      await installed(api(), { ...manifest, version: '1.5.0' });
      const headers = { 'idempotency-key': unique('key') };
      expect((await uninstall(api(), manifest.name, headers)).status).toBe(204);
      expect((await uninstall(api(), manifest.name, headers)).status).toBe(204);
      expect(await versionOf(api(), manifest)).toBe('2.0.0');
      expectRefusal(await expand(api(), manifest, { version: '1.5.0' }), 404, 'pack_not_found');
      await uninstall(api(), manifest.name);
      expect(await versionOf(api(), manifest)).toBe('1.0.0');
      await uninstall(api(), manifest.name);
      expectRefusal(await expand(api(), manifest), 404, 'pack_not_found');
      expectRefusal(await uninstall(api(), manifest.name), 404, 'not_found');
      const taken = await install(api(), { manifest: { ...manifest, label: undefined, description: 'Other' } });
      expectRefusal(taken, 409, 'version_conflict');
      await installed(api(), manifest);
      expect(await versionOf(api(), manifest)).toBe('1.0.0');
    });

    it('any of which can be taken away from under the one in use', async () => {
      const manifest = pack();
      for (const version of ['1.0.0', '2.0.0', '3.0.0']) await installed(api(), { ...manifest, version });
      expect((await uninstall(api(), `${manifest.name}?version=2.0.0`)).status).toBe(204);
      expect(await versionOf(api(), manifest)).toBe('3.0.0');
      expectRefusal(await uninstall(api(), `${manifest.name}?version=2.0.0`), 404, 'not_found');
      await uninstall(api(), manifest.name);
      expect(await versionOf(api(), manifest)).toBe('1.0.0');
    });

    it('of their own in a workspace, which has those of the tenant besides', async () => {
      const name = unique('north');
      const { body } = await host()
        .as('owner')
        .post('/v1/host/capstan/keys', { name, role: 'reviewer', workspace: 'north' });
      const north = new Api(host().url, body.key);
      const manifest = pack();
      await installed(api(), manifest);
      expectRefusal(await uninstall(north, manifest.name), 403, 'forbidden');
      await installed(north, { ...manifest, version: '2.0.0' });
      expect([await versionOf(north, manifest), await versionOf(api(), manifest)]).toEqual(['2.0.0', '1.0.0']);
      await uninstall(north, manifest.name);
      expect(await versionOf(north, manifest)).toBe('1.0.0');
    });

    it('that are signed by one hand', async () => {
      const manifest = pack();
      const [first, second] = ['1.0.0', '2.0.0'].map((version) => JSON.stringify({ ...manifest, version })) as [
        string,
        string,
      ];
      expect((await install(api(), { file: first, signature: signatureOf(first) })).status).toBe(201);
      for (const signature of [undefined, signatureOf(second, generateKeyPairSync('ed25519'))]) {
        expectRefusal(await install(api(), { file: second, signature }), 400, 'pack_signature_invalid');
      }
      const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
      const signature = { ...signatureOf(second), publicKey: pem };
      expect((await install(api(), { file: second, signature })).status).toBe(201);
    });
  });

  it('go into the audit log with whoever changed them', async () => {
    const manifest = pack();
    await installed(api(), manifest);
    await uninstall(api(), manifest.name);
    const { body } = await api().get('/v1/host/capstan/audit?limit=20');
    const mine = body.items.filter(({ target }: Body) => target === manifest.name);
    expect(mine.map(({ action, actor }: Body) => [action, actor])).toEqual([
      ['pack.uninstall', 'reviewer-of-alpha'],
      ['pack.install', 'reviewer-of-alpha'],
    ]);
  });

  it('are listed page by page, what was changed last first, each once', async () => {
    const long = `vendor.acme.${unique('long')}`.padEnd(256, 'x');
    const made = [pack(), pack({ name: long }), pack()];
    for (const manifest of made) await installed(api(), manifest);
    await installed(api(), { ...made[0], version: '2.0.0' });
    const seen: Body[] = [];
    for (let cursor = ''; ; ) {
      const { body } = await api().get(`${PACKS}?limit=2${cursor}`);
      seen.push(...body.items);
      if (body.nextCursor === undefined) break;
      cursor = `&cursor=${body.nextCursor}`;
    }
    const names = seen.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toContain('vendor.openwop.workflow-chain-sample');
    expect(new Set(names.slice(0, 3))).toEqual(new Set(made.map(({ name }) => name)));
    expect(seen.find(({ name }) => name === made[0].name).version).toBe('2.0.0');
    expectRefusal(await api().get(`${PACKS}?limit=0`), 400, 'validation_error');
  });

  it("that come with the host are nobody's to remove", async () => {
    const sample = 'vendor.openwop.workflow-chain-sample';
    expect((await api().get(`${PACKS}/${sample}`)).body).toMatchObject({
      shared: true,
      provenance: { source: 'host' },
    });
    expectRefusal(await uninstall(api(), sample), 403, 'forbidden');
  });

  it('are pinned by a lockfile that says the same each time', async () => {
    const manifest = pack({ name: `vendor.acme.${unique('pinned').toLowerCase()}` });
    const file = JSON.stringify(manifest);
    await install(api(), { file, signature: signatureOf(file) });
    const dependent = pack({ dependencies: { 'core.openwop.http': '^1.0.0', [manifest.name]: '^1.0.0' } });
    await installed(api(), dependent);
    const { body, text, headers } = await api().get(`${PACKS}/lockfile`);
    expect(schemas.packLockfile(body)).toEqual([]);
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    expect(text).toBe(`${JSON.stringify(body, null, 2)}\n`);
    expect((await api().get(`${PACKS}/lockfile`)).text).toBe(text);
    const names = body.packs.map(({ name }: Body) => name);
    expect(names).toEqual([...names].sort());
    const entry = (name: string): Body => body.packs.find((other: Body) => other.name === name);
    expect(entry(manifest.name)).toEqual({
      name: manifest.name,
      version: '1.0.0',
      integrity: integrityOf(file),
      signature: { ...signatureOf(file), publicKey: bareKey },
    });
    expect(entry(dependent.name).dependencies).toEqual({ [manifest.name]: '1.0.0' });
  });

  describe('are shown to everybody', () => {
    const sample = 'vendor.openwop.workflow-chain-sample';
    const anyone = (path: string): Promise<Answer> => host().anonymous.get(`/v1/packs/${path}`);

    it("when they come with the host, and never when they are a tenant's", async () => {
      const manifest = pack();
      await installed(api(), manifest);
      const { status, body } = await anyone('-/search?q=');
      const names = body.results.map(({ name }: Body) => name).sort();
      expect({ status, names }).toEqual({
        status: 200,
        names: ['core.conformance.agent-pack', 'core.openwop.agent-examples', sample],
      });
      expect((await anyone('-/search?q=SUM')).body.results).toHaveLength(1);
      expect((await anyone('-/search?q=elephant')).body.results).toEqual([]);
      expectRefusal(await anyone(manifest.name), 404, 'pack_not_found');
      expectRefusal(await anyone(`${manifest.name}/-/1.0.0.json`), 404, 'pack_not_found');
    });

    it('with their versions and their manifest', async () => {
      const { body } = await anyone(sample);
      expect(body).toMatchObject({ name: sample, 'dist-tags': { latest: '1.0.0' } });
      expect(Object.keys(body.versions)).toEqual(['1.0.0']);
      const { integrity, publishedAt, ...manifest } = (await anyone(`${sample}/-/1.0.0.json`)).body;
      expect(schemas.chainPack(manifest)).toEqual([]);
      expect({ version: '1.0.0', integrity, publishedAt }).toEqual(body.versions['1.0.0']);
      expect((await anyone(`${sample}/-/keychain`)).body).toEqual({ keys: [] });
    });

    it('and what is not there has its own name each', async () => {
      expectRefusal(await anyone('not-reverse-dns/-/1.0.json'), 400, 'invalid_pack_name');
      expectRefusal(await anyone(`${sample}/-/not-a-version.json`), 400, 'invalid_version');
      expectRefusal(await anyone(`${sample}/-/9.0.0.json`), 404, 'pack_version_not_found');
      expectRefusal(await anyone(`${sample}/-/1.0.0.sig`), 404, 'signature_not_available');
      expectRefusal(await anyone('vendor.acme.none/-/keychain'), 404, 'pack_not_found');
    });
  });

  describe('have chains that are filled in', () => {
    it('as the chain and its parameters say', async () => {
      const manifest = pack({ chains: [chain({ capabilities: ['cacheable'] })] });
      await installed(api(), manifest);
      const { status, body, text } = await expand(api(), manifest, { parameters: { who: 'Ada', extras: [1, 'two'] } });
      expect(status, text).toBe(200);
      const prefix = `vendor_acme_greet_${body.expansionId}_`;
      expect(body).toMatchObject({ chainId: 'vendor.acme.greet', packName: manifest.name, packVersion: '1.0.0' });
      expect(body.expansionId).toMatch(/^[0-9a-f]{4,}$/);
      expect(body.nodes).toEqual([
        {
          id: `${prefix}say`,
          typeId: 'core.identity',
          inputs: { input: 'Hello Ada', extras: [1, 'two'] },
          capabilities: ['cacheable'],
        },
        {
          id: `${prefix}hear`,
          typeId: 'core.identity',
          inputs: { heard: { ...SAID, nodeId: `${prefix}say` } },
          capabilities: ['cacheable'],
        },
      ]);
      expect(body.edges).toEqual([{ from: `${prefix}say.output`, to: `${prefix}hear.input` }]);
      expect((await expand(api(), manifest)).body.expansionId).not.toBe(body.expansionId);
    });

    it('the same way for the same id', async () => {
      const manifest = pack();
      await installed(api(), manifest);
      const [first, second] = [1, 2].map(() => expand(api(), manifest, { expansionId: 'abc1' }));
      expect((await first)!.text).toBe((await second)!.text);
    });

    it('to a workflow that runs', async () => {
      const manifest = pack();
      await installed(api(), manifest);
      const once = (await expand(api(), manifest)).body.workflow;
      const twice = (await expand(api(), manifest, { parameters: { who: 'Grace' } })).body.workflow;
      const definition = workflow([...once.nodes, ...twice.nodes], [...once.edges, ...twice.edges]);
      expect(schemas.workflow(definition)).toEqual([]);
      const registered = await api().post('/v1/host/capstan/workflows', definition);
      expect(registered.status, registered.text).toBe(201);
      const runId = await api().run(definition.id);
      expect((await api().ended(runId)).status).toBe('completed');
      const heard = (await api().events(runId))
        .filter(({ type, nodeId }) => type === 'node.completed' && nodeId.endsWith('_hear'))
        .map(({ payload }) => JSON.stringify(payload));
      expect(heard.join()).toContain('Hello Ada');
      expect(heard.join()).toContain('Hello Grace');
    });

    it('not without what it takes', async () => {
      const manifest = pack({
        chains: [
          chain(),
          chain({ chainId: 'unknown', dag: { nodes: [{ id: 'x', typeId: 'made.up.foo' }] } }),
          chain({
            chainId: 'dead-edge',
            dag: { ...chain().dag, edges: [{ from: 'say', to: 'hear', condition: { type: 'truthy' } }] },
          }),
        ],
      });
      await installed(api(), manifest);
      const unknown = await expand(api(), manifest, { chainId: 'unknown' });
      expectRefusal(unknown, 422, 'chain_unresolvable_typeid');
      expect(unknown.body.details.typeId).toBe('made.up.foo');
      const invalid = await expand(api(), manifest, { parameters: { who: '' } });
      expectRefusal(invalid, 422, 'chain_parameter_invalid');
      expect(invalid.body.details.path).toBe('/who');
      expectRefusal(await expand(api(), manifest, { parameters: {} }), 422, 'chain_parameter_invalid');
      expectRefusal(await expand(api(), manifest, { chainId: 'dead-edge' }), 422, 'chain_edge_condition_invalid');
      expectRefusal(await expand(api(), manifest, { chainId: 'none' }), 404, 'chain_not_found');
      expectRefusal(await expand(api(), { name: 'vendor.acme.none' }), 404, 'pack_not_found');
      expectRefusal(await api().post(EXPAND, { packName: manifest.name }), 422, 'invalid_request');
      expectRefusal(await expand(api(), manifest, { parameters: [] }), 422, 'invalid_request');
    });

    it('of the pack that conformance suites ask for', async () => {
      const sample = 'vendor.openwop.workflow-chain-sample';
      const parameters = { url: 'https://example.com/article', targetLength: 'executive-summary' };
      const { status, body } = await api().post(EXPAND, {
        packName: sample,
        chainId: `${sample}.fetch-and-summarize`,
        parameters,
      });
      expect(status).toBe(200);
      const prefix = `vendor_openwop_workflow-chain-sample_fetch-and-summarize_${body.expansionId}_`;
      expect(body.edges).toEqual([{ from: `${prefix}fetch.body`, to: `${prefix}summarize.sourceText` }]);
      expect(body.nodes[0].config.url).toBe(parameters.url);
    });
  });
});
