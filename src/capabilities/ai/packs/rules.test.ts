import { describe, expect, it } from 'vitest';
import type { WorkflowChain } from '../../../protocol/ai/packs.ts';
import { catalogOf } from '../../../runtime/catalog.ts';
import { localSchemaValidator } from '../../../runtime/validation/schema-validator.ts';
import { NODES } from '../../running/nodes/standard.ts';
import { checkManifest, checkSuccession, expand } from './rules.ts';

// biome-ignore lint/suspicious/noExplicitAny: manifests of any shape, the broken ones included
type Manifest = any;

const chain = (more: object = {}): WorkflowChain => ({
  chainId: 'vendor.acme.greet',
  version: '1.0.0',
  label: 'Greet',
  description: 'Says something nice',
  parameters: { type: 'object', properties: { who: { type: 'string' } }, required: ['who'] },
  dag: { nodes: [{ id: 'say', typeId: 'core.noop', config: { text: 'Hello {{params.who}}' } }] },
  ...more,
});
const manifest = (more: object = {}): Manifest => ({
  name: 'vendor.acme.greetings',
  version: '1.0.0',
  kind: 'workflow-chain',
  engines: { openwop: '>=1.0.0 <2.0.0' },
  chains: [chain()],
  ...more,
});
const edited = (edit: (manifest: Manifest) => void): Manifest => {
  const copy = structuredClone(manifest());
  edit(copy);
  return copy;
};
const two = (edges: unknown) => ({
  nodes: [
    { id: 'a', typeId: 'core.noop' },
    { id: 'b', typeId: 'core.noop' },
  ],
  edges,
});

describe('a manifest', () => {
  it('is accepted', () => {
    const full = manifest({
      description: 'Many',
      author: 'Acme',
      license: 'MIT',
      homepage: 'https://acme.example',
      keywords: ['greeting'],
      engines: { openwop: '^1.0.0', node: '>=20' },
      dependencies: { 'core.openwop.http': '^1.0.0' },
      signing: { publicKeyRef: 'keys/acme.pem', signatureRef: 'pack.json.sig', method: 'manual' },
      chains: [chain({ capabilities: ['cacheable'], outputs: { said: { type: 'string', description: 'What' } } })],
    });
    expect(checkManifest(full)).toBeUndefined();
  });

  it.each<[string, string, (manifest: Manifest) => void]>([
    ['no name', '/name', (m) => delete m.name],
    ['a name without an owner', '/name', (m) => (m.name = 'greetings')],
    ['a name of nobody', '/name', (m) => (m.name = 'other.acme.greetings')],
    ['a version that is a range', '/version', (m) => (m.version = '^1.0.0')],
    ['no engine', '/engines/openwop', (m) => (m.engines = {})],
    ['an engine that is no range', '/engines/openwop', (m) => (m.engines = { openwop: 'latest' })],
    ['an engine of another major', '/engines/openwop', (m) => (m.engines = { openwop: '>=2.0.0' })],
    ['no chains', '/chains', (m) => delete m.chains],
    ['none in the list of chains', '/chains', (m) => (m.chains = [])],
    ['something nobody knows', '/surprise', (m) => (m.surprise = 1)],
    ['something unknown in a chain', '/chains/0/triggers', (m) => (m.chains[0].triggers = [])],
    ['a chain id that begins with a capital', '/chains/0/chainId', (m) => (m.chains[0].chainId = 'Greet')],
    ['no label', '/chains/0/label', (m) => delete m.chains[0].label],
    ['a chain twice', '/chains/1/chainId', (m) => m.chains.push(chain())],
    ['no nodes', '/chains/0/dag/nodes', (m) => (m.chains[0].dag.nodes = [])],
    ['a workflow inside', '/chains/0/dag/settings', (m) => (m.chains[0].dag.settings = {})],
    ['a node without a type', '/chains/0/dag/nodes/0/typeId', (m) => delete m.chains[0].dag.nodes[0].typeId],
    [
      'a node twice',
      '/chains/0/dag/nodes/1/id',
      (m) =>
        (m.chains[0].dag = {
          ...two([]),
          nodes: [
            { id: 'a', typeId: 'x' },
            { id: 'a', typeId: 'x' },
          ],
        }),
    ],
    ['two nodes and no edges', '/chains/0/dag/edges', (m) => (m.chains[0].dag = two(undefined))],
    ['an edge to nowhere', '/chains/0/dag/edges/0/to', (m) => (m.chains[0].dag = two([{ from: 'a' }]))],
    ['a trait of its own', '/chains/0/capabilities/0', (m) => (m.chains[0].capabilities = ['magic'])],
    [
      'a secret',
      '/chains/0/dag/nodes/0/config/text',
      (m) => (m.chains[0].dag.nodes[0].config.text = `sk-ant-${'a1B2'.repeat(12)}`),
    ],
  ])('with %s is refused, and says where', (_what, path, edit) => {
    expect(checkManifest(edited(edit))).toMatchObject({
      refused: 'invalid_manifest',
      details: { path, fields: expect.arrayContaining([{ path, message: expect.any(String) }]) },
    });
  });

  it.each([[null], [[]], ['text'], [1]])('is not %j', (value) => {
    expect(checkManifest(value)).toMatchObject({ refused: 'invalid_manifest', details: { path: '' } });
  });

  it.each<[string, object, string]>([
    ['nodes beside chains', { nodes: [{}] }, '/nodes'],
    ['agents beside chains', { agents: [{}] }, '/agents'],
    ['prompts beside chains', { prompts: [] }, '/prompts'],
    ['a runtime', { runtime: { language: 'remote', entry: 'pack.json' } }, '/runtime'],
    ['chains and no kind', { kind: undefined }, '/chains'],
    ['chains in a node pack', { kind: 'node' }, '/chains'],
    ['a kind of its own', { kind: 'magic' }, '/kind'],
    ['a kind that is no text', { kind: 7 }, '/kind'],
  ])('of two minds is refused by that name: %s', (_what, more, path) => {
    const mixed = JSON.parse(JSON.stringify(manifest(more)));
    expect(checkManifest(mixed)).toMatchObject({ refused: 'pack_kind_invalid', details: { path } });
  });

  it.each<[object, string]>([
    [{ agents: [{}], nodes: [{}], runtime: { language: 'javascript', entry: 'index.js' } }, 'packs.node'],
    [{ nodes: [{}], runtime: { language: 'javascript', entry: 'index.js' } }, 'packs.node'],
    [{ kind: 'prompt', prompts: [{}] }, 'packs.prompt'],
  ])('of something that does nothing here is not installed: %j', (contents, requiredCapability) => {
    const { kind: _kind, chains: _chains, ...rest } = manifest();
    expect(checkManifest({ ...rest, ...contents })).toMatchObject({
      refused: 'capability_required',
      details: { requiredCapability },
    });
  });
});

describe('a chain', () => {
  const checks = { catalog: catalogOf(NODES), schemas: localSchemaValidator() };
  const expansion = (more: object = {}, parameters: Record<string, unknown> = { who: 'Ada' }) =>
    expand(chain(more), { parameters, expansionId: 'e' }, checks);

  it('is expanded', async () => {
    expect(await expansion()).toMatchObject({ nodes: [{ config: { text: 'Hello Ada' } }], workflow: { edges: [] } });
  });

  it.each<[string, Record<string, unknown>, string]>([
    ['one that is missing', {}, '/who'],
    ['one of another type', { who: 7 }, '/who'],
    ['a secret', { who: `sk-ant-${'a1B2'.repeat(12)}` }, '/who'],
  ])('is not filled in with %s', async (_what, parameters, path) => {
    expect(await expansion({}, parameters)).toMatchObject({ refused: 'chain_parameter_invalid', details: { path } });
  });

  it('is not expanded beyond the maximum size', async () => {
    const nodes = [{ id: 'n', typeId: 'core.noop', config: { all: Array(2_000).fill('{{params.who}}') } }];
    expect(await expansion({ dag: { nodes } }, { who: 'x'.repeat(2_000) })).toMatchObject({
      refused: 'chain_parameter_invalid',
      details: { path: '' },
    });
  });

  it('needs node types that the host has, whatever its parameters are', async () => {
    const nodes = [
      { id: 'a', typeId: 'core.noop' },
      { id: 'b', typeId: 'made.up.foo' },
    ];
    expect(await expansion({ dag: { nodes, edges: [] } }, {})).toMatchObject({
      refused: 'chain_unresolvable_typeid',
      details: { typeId: 'made.up.foo', chainId: 'vendor.acme.greet', nodeId: 'b' },
    });
  });

  it.each([{ type: 'truthy' }, { type: 'equals', right: 1 }, { type: 'expression', expression: '1 +' }, '1 +'])(
    'has no edge with the condition %j',
    async (condition) => {
      expect(await expansion({ dag: two([{ from: 'a', to: 'b', condition }]) })).toMatchObject({
        refused: 'chain_edge_condition_invalid',
        details: { from: 'a', to: 'b' },
      });
    },
  );

  it('may refer to nodes of the surrounding workflow', async () => {
    const inputs = { in: { type: 'connection', nodeId: 'before', outputKey: 'out' } };
    const nodes = [{ id: 'a', typeId: 'core.noop', inputs }];
    const edges = [
      { from: 'before', to: 'a' },
      { from: 'a', to: 'after.in' },
    ];
    expect(await expansion({ dag: { nodes, edges } })).toMatchObject({
      edges: [{ from: 'before' }, { to: 'after.in' }],
    });
  });

  it('must not have cycles or invalid node configuration', async () => {
    const edges = [
      { from: 'a', to: 'b' },
      { from: 'b', to: 'a' },
    ];
    expect(await expansion({ dag: two(edges) })).toMatchObject({ refused: 'validation_error', status: 422 });
    const delay = { nodes: [{ id: 'a', typeId: 'core.delay', config: { delayMs: '{{params.who}}' } }] };
    expect(await expansion({ dag: delay })).toMatchObject({ refused: 'validation_error', status: 422 });
  });

  it('with features that this host does not serve is refused', async () => {
    expect(await expansion({ subChains: [{ ref: 'other' }] })).toMatchObject({ refused: 'sub_chain_unsupported' });
    expect(await expansion({ compensation: {} })).toMatchObject({ refused: 'capability_required' });
    expect(await expansion({ producedVariables: [] })).toMatchObject({ refused: 'capability_required' });
    const nodes = [{ id: 'a', typeId: 'core.noop', compensation: { nodeTypeId: 'core.noop' } }];
    expect(await expansion({ dag: { nodes } })).toMatchObject({
      refused: 'capability_required',
      details: { requiredCapability: 'compensation' },
    });
  });

  it('does not write secrets into workflows', async () => {
    const parameters = { properties: { who: { type: 'string', 'x-openwop-sensitive': true } } };
    expect(await expansion({ parameters })).toMatchObject({
      refused: 'sensitive_param_not_deferrable',
      details: { parameter: 'who' },
    });
  });
});

describe('the next version', async () => {
  const known = (version: string, digest: string, key?: string, removed_at: number | null = null) => ({
    version,
    digest,
    revision: 1,
    removed_at,
    provenance: JSON.stringify(key ? { signature: { publicKey: key } } : {}),
  });
  const next = (version: string, digest: string, publicKey?: string) => ({
    version,
    digest,
    signature: publicKey === undefined ? undefined : { algorithm: 'ed25519' as const, publicKey, value: 'v' },
  });

  it('is a new one, or one with the same content', async () => {
    expect(checkSuccession(next('2.0.0', 'b'), [known('3.0.0', 'a')])).toBeUndefined();
    expect(checkSuccession(next('3.0.0', 'a'), [known('3.0.0', 'a')])).toBeUndefined();
  });

  it('never has other content than before, even after it was removed', async () => {
    expect(checkSuccession(next('1.0.0', 'b'), [known('1.0.0', 'a', undefined, 5)])).toMatchObject({
      refused: 'version_conflict',
    });
  });

  it('is signed with the key of the current version', async () => {
    const signed = [known('1.0.0', 'a', 'K')];
    expect(checkSuccession(next('2.0.0', 'b', 'K'), signed)).toBeUndefined();
    for (const key of [undefined, 'L']) {
      expect(checkSuccession(next('2.0.0', 'b', key), signed)).toMatchObject({
        refused: 'pack_signature_invalid',
        details: { reason: 'signer' },
      });
    }
    expect(checkSuccession(next('2.0.0', 'b'), [known('1.0.0', 'a', 'K', 5)])).toBeUndefined();
  });
});
