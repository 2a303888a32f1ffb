import { describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import {
  connection,
  edge,
  expression,
  fixed,
  line,
  node,
  register,
  unique,
  variable,
  WORKFLOWS,
  workflow,
} from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { startTestHost } from '../support/host.ts';
import { approval, resolve, waitingRun } from '../support/interrupts.ts';
import { onEachStore, onOneStore } from '../support/stores.ts';

/** contract.md 3 and execution.md 1: registering, replacing and removing workflows. */

type Problem = { path: string; message: string; nodeId?: string };
type Definition = ReturnType<typeof workflow>;

const two = (more: Partial<ReturnType<typeof edge>>): Definition =>
  workflow([node('a', 'core.identity', { inputs: { n: fixed(1) } }), node('b')], [edge('a', 'b', more)]);
const one = (typeId: string, more: Parameters<typeof node>[2] = {}): Definition =>
  workflow([node('only', typeId, more)]);
const withMore = (more: object): Definition => ({ ...workflow([node('a')]), ...more }) as Definition;
const secret = (kind: string): string => `sk-${kind}0123456789abcdefghijklmnopqrstuv`;

/** Definitions that are wrong, what is wrong with them, and which node the refusal has to name. */
const WRONG: readonly (readonly [what: string, definition: Definition, path: RegExp, nodeId?: string])[] = [
  ['two nodes with one id', workflow([node('a'), node('a')]), /^nodes\[1\]\.id$/, 'a'],
  [
    'two edges with one id',
    workflow([node('a'), node('b'), node('c')], [edge('a', 'b'), { ...edge('a', 'c'), id: 'a-b' }]),
    /^edges\[1\]\.id$/,
  ],
  [
    'two variables with one name',
    withMore({
      variables: [
        { name: 'v', type: 'string' },
        { name: 'v', type: 'number' },
      ],
    }),
    /^variables\[1\]/,
  ],
  ['a node type that nobody has', one('acme.unheard.of'), /^nodes\[0\]\.typeId$/, 'only'],
  ['a core type that does not exist', one('core.teleport'), /^nodes\[0\]\.typeId$/, 'only'],
  ['an edge from nowhere', workflow([node('a')], [edge('ghost', 'a')]), /^edges\[0\]\.sourceNodeId$/],
  ['an edge to nowhere', workflow([node('a')], [edge('a', 'ghost')]), /^edges\[0\]\.targetNodeId$/],
  ['a node that waits for itself', workflow([node('a')], [edge('a', 'a')]), /^edges/, 'a'],
  [
    'two nodes that wait for each other',
    workflow([node('a'), node('b')], [edge('a', 'b'), edge('b', 'a')]),
    /^edges/,
    'a',
  ],
  [
    'a long circle with an entrance',
    workflow(
      [...'xabcd'].map((id) => node(id)),
      [edge('x', 'a'), ...line(...'abcd'), edge('d', 'a')],
    ),
    /^edges/,
    'a',
  ],
  [
    'an edge expression that does not parse',
    two({ condition: { type: 'expression', expression: 'output.n >' } }),
    /^edges\[0\]\.condition/,
  ],
  [
    'an edge expression about an unknown name',
    two({ condition: { type: 'expression', expression: 'run.id == 1' } }),
    /^edges\[0\]\.condition/,
  ],
  [
    'an edge expression that calls an unknown function',
    two({ condition: { type: 'expression', expression: 'exec("ls")' } }),
    /^edges\[0\]\.condition/,
  ],
  ['an edge expression without an expression', two({ condition: { type: 'expression' } }), /^edges\[0\]\.condition/],
  [
    'an edge expression that is empty',
    two({ condition: { type: 'expression', expression: '' } }),
    /^edges\[0\]\.condition/,
  ],
  [
    'an edge expression longer than anyone needs',
    two({ condition: { type: 'expression', expression: `true${' && true'.repeat(2_000)}` } }),
    /^edges\[0\]\.condition/,
  ],
  ['a pattern that is none', two({ condition: { type: 'regex', left: 'n', right: '(' } }), /^edges\[0\]\.condition/],
  [
    'a pattern that could run away',
    two({ condition: { type: 'regex', left: 'n', right: '(a)\\1' } }),
    /^edges\[0\]\.condition/,
  ],
  ['a pattern that is no text', two({ condition: { type: 'regex', left: 'n', right: 5 } }), /^edges\[0\]\.condition/],
  ...(['equals', 'notEquals', 'contains', 'regex', 'truthy', 'falsy'] as const).flatMap((type) => [
    [`a ${type} condition without left`, two({ condition: { type, right: 'x' } }), /^edges\[0\]\.condition/] as const,
    [
      `a ${type} condition with an empty left`,
      two({ condition: { type, left: '', right: 'x' } }),
      /^edges\[0\]\.condition/,
    ] as const,
  ]),
  [
    'a port expression that does not parse',
    one('core.identity', { inputs: { x: expression('1 +') } }),
    /^nodes\[0\]\.inputs\.x$/,
    'only',
  ],
  [
    'a port expression about an unknown name',
    one('core.identity', { inputs: { x: expression('secrets.key') } }),
    /^nodes\[0\]\.inputs\.x$/,
    'only',
  ],
  [
    'a port expression that asks for the output of an edge',
    one('core.identity', { inputs: { x: expression('output.x') } }),
    /^nodes\[0\]\.inputs\.x$/,
    'only',
  ],
  [
    'a connection to nowhere',
    one('core.identity', { inputs: { x: connection('ghost', 'y') } }),
    /^nodes\[0\]\.inputs\.x$/,
    'only',
  ],
  ['a delay of text', one('core.delay', { config: { ms: 'long' } }), /^nodes\[0\]\.config\.ms$/, 'only'],
  ['a negative delay', one('core.delay', { config: { delayMs: -1 } }), /^nodes\[0\]\.config\.delayMs$/, 'only'],
  ['a failure without a code', one('core.fail', { config: { code: '' } }), /^nodes\[0\]\.config\.code$/, 'only'],
  [
    'a variable to set without a name',
    one('core.setVariable', { config: { value: 1 } }),
    /^nodes\[0\]\.config/,
    'only',
  ],
  ['a variable to get without a name', one('core.getVariable'), /^nodes\[0\]\.config/, 'only'],
  ['a write to no channel', one('core.channelWrite', { config: { reducer: 'append' } }), /^nodes\[0\]\.config/, 'only'],
  [
    'a write without a reducer',
    one('core.channelWrite', { config: { channelName: 'c' } }),
    /^nodes\[0\]\.config/,
    'only',
  ],
  ['a sub-workflow without a workflow', one('core.subWorkflow'), /^nodes\[0\]\.config/, 'only'],
  [
    'a sub-workflow that is not waited for',
    one('core.subWorkflow', { config: { workflowId: 'x', waitForCompletion: false } }),
    /^nodes\[0\]\.config\.waitForCompletion$/,
    'only',
  ],
  [
    'a sub-workflow with an unknown policy',
    one('core.subWorkflow', { config: { workflowId: 'x', onChildFailure: 'shrug' } }),
    /^nodes\[0\]\.config\.onChildFailure$/,
    'only',
  ],
  [
    'a sub-workflow with a mapping that is none',
    one('core.subWorkflow', { config: { workflowId: 'x', inputMapping: { a: 1 } } }),
    /^nodes\[0\]\.config\.inputMapping/,
    'only',
  ],
  ['a condition node without a predicate', one('core.conditional'), /^nodes\[0\]\.config/, 'only'],
  ['a router without routes', one('core.parallel', { config: { routes: [] } }), /^nodes\[0\]\.config\.routes$/, 'only'],
  [
    'a trigger of a node that is not there',
    withMore({ triggers: [{ id: 't', type: 'manual', nodeId: 'ghost' }] }),
    /^triggers\[0\]\.nodeId$/,
  ],
  [
    'a default of the wrong type',
    withMore({ variables: [{ name: 'v', type: 'number', defaultValue: 'one' }] }),
    /^variables\[0\]\.defaultValue$/,
  ],
  [
    'a variable with the name of a channel',
    withMore({ variables: [{ name: 'c', type: 'array' }], channels: { c: { reducer: 'append' } } }),
    /^variables\[0\]\.name$/,
  ],
  [
    'a channel whose entries cannot expire',
    withMore({ channels: { c: { reducer: 'counter', ttlMs: 5 } } }),
    /^channels\.c\.ttlMs$/,
  ],
  [
    'a channel with a reducer of somebody else',
    withMore({ channels: { c: { reducer: 'vendor.acme.sum' } } }),
    /^channels\.c\.reducer$/,
  ],
  [
    'a channel schema that is none',
    withMore({ channels: { c: { reducer: 'append', schema: { type: 'nonsense' } } } }),
    /^channels\.c\.schema$/,
  ],
  ['a schema for options that is none', withMore({ configurableSchema: { type: 5 } }), /^configurableSchema$/],
  [
    'a schema for options that refers elsewhere',
    withMore({ configurableSchema: { $ref: 'https://example.com/x.json' } }),
    /^configurableSchema$/,
  ],
];

/** Definitions whose very shape is wrong. */
const MISSHAPEN: readonly (readonly [what: string, change: object, path: RegExp])[] = [
  ['no nodes', { nodes: [] }, /^nodes$/],
  ['nodes that are none', { nodes: [1] }, /^nodes\[0\]/],
  ['a node without a type', { nodes: [{ ...node('a'), typeId: undefined }] }, /^nodes\[0\]\.typeId$/],
  ['a node without a type', { nodes: [{ ...node('a'), typeId: undefined }] }, /^nodes\[0\]\.typeId$/],
  ['a node with a config that is a list', { nodes: [{ ...node('a'), config: [] }] }, /^nodes\[0\]\.config$/],
  ['a node with an unknown key', { nodes: [{ ...node('a'), colour: 'red' }] }, /^nodes\[0\]\.colour$/],
  ['a node with an empty id', { nodes: [node('')] }, /^nodes\[0\]\.id$/],
  [
    'a port that is a bare value',
    { nodes: [node('a', 'core.noop', { inputs: { x: 5 as never } })] },
    /^nodes\[0\]\.inputs\.x/,
  ],
  [
    'a port of an unknown kind',
    { nodes: [node('a', 'core.noop', { inputs: { x: { type: 'magic' } as never } })] },
    /^nodes\[0\]\.inputs\.x/,
  ],
  [
    'a port without its value',
    { nodes: [node('a', 'core.noop', { inputs: { x: { type: 'variable' } as never } })] },
    /^nodes\[0\]\.inputs\.x/,
  ],
  [
    'an edge with an unknown rule',
    { nodes: [node('a'), node('b')], edges: [edge('a', 'b', { triggerRule: 'maybe' as never })] },
    /^edges\[0\]\.triggerRule$/,
  ],
  [
    'a condition of an unknown kind',
    { nodes: [node('a'), node('b')], edges: [edge('a', 'b', { condition: { type: 'like' as never } })] },
    /^edges\[0\]\.condition\.type$/,
  ],
  ['an unknown key at the root', { surprise: 1 }, /^surprise$/],
  ['no version', { version: undefined }, /^version$/],
  ['an id with capitals', { id: 'Workflow' }, /^id$/],
  ['an id with dots', { id: 'a.b' }, /^id$/],
  ['an id that is too long', { id: 'a'.repeat(129) }, /^id$/],
  ['variables as a map', { variables: {} }, /^variables$/],
  ['a variable of an unknown type', { variables: [{ name: 'v', type: 'date' }] }, /^variables\[0\]\.type$/],
  ['an unknown reducer', { channels: { c: { reducer: 'sum' } } }, /^channels\.c\.reducer$/],
  ['a negative number of retries', { settings: { maxRetries: -1 } }, /^settings\.maxRetries$/],
  ['a negative timeout', { settings: { timeout: -1 } }, /^settings\.timeout$/],
];

const SECRETS: readonly (readonly [where: string, definition: Definition])[] = [
  ['the config of a node', one('core.noop', { config: { header: secret('config') } })],
  ['a static port', one('core.identity', { inputs: { x: fixed({ deep: [secret('port')] }) } })],
  ['the notes of a node', one('core.noop', { notes: `use ${secret('notes')}` })],
  [
    'the default of a variable',
    withMore({ variables: [{ name: 'v', type: 'string', defaultValue: secret('default') }] }),
  ],
  ['the description', withMore({ description: `the key is ${secret('text')}` })],
  ['the metadata', withMore({ metadata: { customProperties: { token: secret('meta') } } })],
  ['an expression', one('core.identity', { inputs: { x: expression(`"${secret('cel')}"`) } })],
  ['a condition', two({ condition: { type: 'equals', left: 'n', right: secret('right') } })],
  ['a key of the config', one('core.noop', { config: { [secret('key')]: 1 } })],
  ['an Anthropic key', one('core.noop', { config: { k: `sk-ant-api03-${'Ab1'.repeat(20)}` } })],
  ['a Google key', one('core.noop', { config: { k: `AIza${'Ab1_'.repeat(9)}` } })],
  [
    'a web token',
    one('core.noop', { config: { k: `eyJhbGciOiJIUzI1NiJ9.${'eyJzdWIiOiIxIn0'}.${'Ab1_'.repeat(10)}` } }),
  ],
];

onEachStore('stored workflows', (host) => {
  const api = (): Api => host().as('editor');
  const post = (definition: unknown, by: Api = api()): Promise<Answer> => by.post(WORKFLOWS, definition);
  const put = (definition: Definition): Promise<Answer> =>
    api().request('PUT', `${WORKFLOWS}/${definition.id}`, definition);
  const remove = (id: string): Promise<Answer> => api().request('DELETE', `${WORKFLOWS}/${id}`);
  const get = (id: string): Promise<Answer> => api().get(`/v1/workflows/${id}`);

  it('answers 201 with a summary, and gives the definition back as it was', async () => {
    const definition = workflow([node('a'), node('b')], [edge('a', 'b')], { description: 'Two nodes' });
    const { status, body } = await post(definition);
    expect(status).toBe(201);
    expect(body).toMatchObject({
      id: definition.id,
      name: definition.name,
      description: 'Two nodes',
      version: '1.0',
      registeredVersion: 1,
      nodes: 2,
      shared: false,
    });
    expect((await get(definition.id)).body).toEqual(definition);
    expect((await api().get(`${WORKFLOWS}/${definition.id}`)).body).toEqual(definition);
  });

  it('keeps everything that the protocol allows in a definition', async () => {
    const definition = workflow(
      [
        node('a', 'core.noop', {
          notes: 'n',
          groupId: 'g',
          outputRole: 'primary',
          cardType: 'c',
          outputSensitivity: { x: false },
          irreversibleEffect: false,
          settings: { retry: { maxRetries: 1 } },
          agent: { agentId: 'core.openwop.agents.sample', modelClass: 'chat' },
        }),
      ],
      [],
      {
        description: 'd',
        type: 't',
        isActive: true,
        status: 'active',
        slug: 'slug',
        tenantId: 'alpha',
        scopeId: 's',
        groups: [{ id: 'g', name: 'G', nodeIds: ['a'], position: { x: 0, y: 0 }, size: { width: 1, height: 1 } }],
        metadata: { author: 'me', tags: ['x'], complianceClass: 'pii', custom: { open: 1 } } as never,
        settings: { timeout: 0, maxRetries: 0, logLevel: 'info' },
        defaults: { promptRefs: { system: 'prompt:p' } },
        acceptsInheritedArtifacts: [{}],
        createdAt: '2026-01-01T00:00:00Z',
        updatedAt: '2026-01-01T00:00:00Z',
        variables: [{ name: 'v', type: 'string', format: 'a format that nobody knows', description: 'd' }],
      },
    );
    expect((await post(definition)).status).toBe(201);
    expect((await get(definition.id)).body).toEqual(definition);
  });

  it.each([
    ['a name alone', 'p'],
    ['a version that is none', 'prompt:p@latest'],
    ['an object with other keys', { templateId: 'p', text: 'Be brief.' }],
  ])('refuses as the reference to a prompt %s', async (_what, system) => {
    const answer = await post({ ...workflow([node('a')]), defaults: { promptRefs: { system } } });
    expectRefusal(answer, 422, 'validation_error');
    expect(answer.body.details.fields[0].path).toMatch(/^defaults\.promptRefs\.system/);
  });

  it('takes ids of nodes of any length and any script', async () => {
    const ids = ['x'.repeat(5_000), 'узел', 'node with blanks', '🙂', 'a/b?c#d', "'; --", '__proto__', 'constructor'];
    const definition = workflow(
      ids.map((id) => node(id)),
      ids.slice(1).map((id, index) => edge(ids[index]!, id, { id: `e${index}` })),
    );
    expect((await post(definition)).status).toBe(201);
    const snapshot = await api().ended(await api().run(definition.id));
    expect(snapshot.status).toBe('completed');
    const events = await api().events(snapshot.runId);
    const completed = events.filter(({ type }) => type === 'node.completed').map(({ payload }) => payload.nodeId);
    expect(completed).toEqual(ids);
  });

  it.each([
    ['NUL', 'a\u0000b'],
    ['a line break', 'a\nb'],
    ['half a character', 'a\ud800b'],
  ])('refuses ids with %s in them', async (_what, id) => {
    const named = { ...node('a'), id };
    const ofNode = await post(workflow([named]));
    expectRefusal(ofNode, 422, 'validation_error');
    expect(ofNode.body.details.fields[0].path).toBe('nodes[0].id');
    const ofEdge = await post(workflow([node('a'), node('b')], [edge('a', 'b', { id })]));
    expectRefusal(ofEdge, 422, 'validation_error');
    expect(ofEdge.body.details.fields[0].path).toBe('edges[0].id');
  });

  it('of the same definition again changes nothing', async () => {
    const definition = workflow([node('a')]);
    const first = await post(definition);
    const again = await post(structuredClone(definition));
    expect([first.body.registeredVersion, again.body.registeredVersion]).toEqual([1, 1]);
  });

  it('of another definition under the same id makes a new version', async () => {
    const definition = workflow([node('a')]);
    await post(definition);
    const second = await post({ ...definition, nodes: [node('b')] });
    expect(second.body.registeredVersion).toBe(2);
    expect((await get(definition.id)).body.nodes[0].id).toBe('b');
  });

  it('replaces by PUT, with 200 and the next version', async () => {
    const definition = workflow([node('a')]);
    await post(definition);
    const answer = await put({ ...definition, name: 'Second' });
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ id: definition.id, name: 'Second', registeredVersion: 2 });
    expect((await get(definition.id)).body.name).toBe('Second');
  });

  it('does not replace what is not there, or under another id', async () => {
    const definition = workflow([node('a')]);
    expectRefusal(await put(definition), 404, 'not_found');
    await post(definition);
    const other = await api().request('PUT', `${WORKFLOWS}/${definition.id}`, { ...definition, id: unique('wf') });
    expect([400, 422]).toContain(other.status);
    expect(other.body.error).toBe('validation_error');
    expect((await get(definition.id)).body).toEqual(definition);
  });

  it('does not replace by something invalid', async () => {
    const definition = workflow([node('a')]);
    await post(definition);
    expectRefusal(await put({ ...definition, nodes: [node('a'), node('a')] }), 422, 'validation_error');
    expect((await get(definition.id)).body).toEqual(definition);
    expect((await put({ ...definition, name: 'Next' })).body.registeredVersion).toBe(2);
  });

  it('removes with 204 and nothing more, once', async () => {
    const definition = workflow([node('a')]);
    await post(definition);
    const removed = await remove(definition.id);
    expect({ status: removed.status, text: removed.text }).toEqual({ status: 204, text: '' });
    expectRefusal(await remove(definition.id), 404, 'not_found');
    expectRefusal(await get(definition.id), 404, 'not_found');
    expectRefusal(await api().post('/v1/runs', { workflowId: definition.id }), 404, 'not_found');
    const { items } = (await api().get(`${WORKFLOWS}?limit=200`)).body;
    expect(items.map(({ id }: { id: string }) => id)).not.toContain(definition.id);
  });

  it('takes what was removed back, with a version that was not used before', async () => {
    const definition = workflow([node('a')]);
    await post(definition);
    await put({ ...definition, name: 'Second' });
    await remove(definition.id);
    const again = await post({ ...definition, name: 'Third' });
    expect(again.status).toBe(201);
    expect(again.body.registeredVersion).toBe(3);
    expect((await get(definition.id)).body.name).toBe('Third');
  });

  it('goes back to a version that was there before', async () => {
    const definition = workflow([node('a')]);
    await post(definition);
    await put({ ...definition, nodes: [node('b')] });
    await put(definition);
    expect((await get(definition.id)).body).toEqual(definition);
    const snapshot = await api().ended(await api().run(definition.id));
    expect(Object.keys(snapshot.nodeStates)).toEqual(['a']);
  });

  it('by many at once leaves one version current and loses none', async () => {
    const definition = workflow([node('a')]);
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) => post({ ...definition, name: `Version ${index}` })),
    );
    const done = answers.filter(({ status }) => status === 201);
    for (const answer of answers.filter(({ status }) => status !== 201)) expectRefusal(answer, 409, 'conflict');
    expect(done.length).toBeGreaterThan(0);
    expect(new Set(done.map(({ body }) => body.registeredVersion)).size).toBe(done.length);
    const newest = done.toSorted((a, b) => b.body.registeredVersion - a.body.registeredVersion)[0]!;
    expect((await get(definition.id)).body.name).toBe(newest.body.name);
  });

  it('lists pages without showing a workflow twice or missing one, while new ones arrive', async () => {
    const before: string[] = [];
    for (let index = 0; index < 12; index++) before.push(await register(api(), workflow([node('a')])));
    const seen: string[] = [];
    for (let cursor = ''; ; ) {
      const { body } = await api().get(`${WORKFLOWS}?limit=5${cursor}`);
      seen.push(...body.items.map(({ id }: { id: string }) => id));
      if (body.nextCursor === undefined) break;
      expect(body.items).toHaveLength(5);
      cursor = `&cursor=${encodeURIComponent(body.nextCursor)}`;
      await register(api(), workflow([node('a')]));
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen).toEqual(expect.arrayContaining([...before, 'conformance-noop']));
  });

  it('tells shared workflows from own ones in the list', async () => {
    const id = await register(api(), workflow([node('a')]));
    const { items } = (await api().get(`${WORKFLOWS}?limit=200`)).body;
    const find = (wanted: string) => items.find((item: { id: string }) => item.id === wanted);
    expect(find(id)).toMatchObject({ shared: false, nodes: 1, registeredVersion: 1 });
    expect(find('conformance-noop')).toMatchObject({ shared: true });
  });

  // contract.md 3: lists are newest first.
  it('lists newest first, and by id what changed within one millisecond', async () => {
    const ids = [unique('wf-b'), unique('wf-a'), unique('wf-c')];
    for (const id of ids) await register(api(), { ...workflow([node('a')]), id });
    const items: { id: string; updatedAt: string }[] = (await api().get(`${WORKFLOWS}?limit=3`)).body.items;
    expect(items.map(({ id }) => id).sort()).toEqual(ids.toSorted());
    for (const [index, { id, updatedAt }] of items.slice(1).entries()) {
      const above = items[index]!;
      if (above.updatedAt === updatedAt) expect(above.id < id).toBe(true);
      else expect(ids.indexOf(above.id)).toBeGreaterThan(ids.indexOf(id));
    }
  });
});

onOneStore('registering workflows', (host) => {
  const api = (): Api => host().as('editor');
  const post = (definition: unknown, by: Api = api()): Promise<Answer> => by.post(WORKFLOWS, definition);
  const get = (id: string): Promise<Answer> => api().get(`/v1/workflows/${id}`);

  it('lets a viewer read and not write', async () => {
    const definition = workflow([node('a')]);
    expectRefusal(await post(definition, host().as('viewer')), 403, 'forbidden');
    await post(definition);
    expect((await host().as('viewer').get(`/v1/workflows/${definition.id}`)).status).toBe(200);
    const removed = await host().as('viewer').request('DELETE', `${WORKFLOWS}/${definition.id}`);
    expectRefusal(removed, 403, 'forbidden');
  });

  const wrong = WRONG.map(([what, definition, path, nodeId]) => ({ what, definition, path, nodeId }));

  it.each(wrong)('refuses $what with 422, and says where', async ({ definition, path, nodeId }) => {
    const answer = await post(definition);
    expectRefusal(answer, 422, 'validation_error');
    const problems: Problem[] = answer.body.details.fields;
    const found = problems.find((problem) => path.test(problem.path));
    expect(found, JSON.stringify(problems)).toBeDefined();
    expect(found!.message).not.toBe('');
    if (nodeId !== undefined) expect(found!.nodeId).toBe(nodeId);
    expect(answer.body.message).toContain(problems[0]!.path);
    expectRefusal(await get(definition.id), 404, 'not_found');
  });

  it('names every problem, not the first', async () => {
    const definition = workflow(
      [node('a', 'acme.unknown'), node('b', 'core.delay', { config: { ms: 'x' } })],
      [edge('a', 'ghost')],
    );
    const { body } = await post(definition);
    const paths = body.details.fields.map(({ path }: Problem) => path);
    expect(paths).toEqual(['nodes[0].typeId', 'nodes[1].config.ms', 'edges[0].targetNodeId']);
  });

  it.each(SECRETS)('refuses a secret in %s, and does not repeat it', async (_where, definition) => {
    const answer = await post(definition);
    expectRefusal(answer, 422, 'validation_error');
    expect(answer.body.details.fields[0].path).not.toBe('');
    expect(answer.text).not.toMatch(/0123456789abcdefghijklmnopqrstuv|Ab1Ab1|Ab1_Ab1/);
    expectRefusal(await get(definition.id), 404, 'not_found');
  });

  it('refuses a type of a capability that the host does not have', async () => {
    const typeId = 'core.conversationGate';
    const requiredCapability = 'conversationPrimitive';
    const answer = await post(workflow([node('fine'), node('gated', typeId)]));
    expectRefusal(answer, 422, 'capability_required');
    expect(answer.body.details).toMatchObject({ offendingTypeId: typeId, nodeId: 'gated', requiredCapability });
    expect(answer.text).toContain(requiredCapability);
  });

  it('refuses compensations, credentials and deployments as capabilities that the host does not have', async () => {
    for (const [definition, requiredCapability] of [
      [withMore({ settings: { compensation: { triggers: ['run-cancel'] } } }), 'compensation'],
      [one('core.noop', { compensation: { nodeTypeId: 'core.noop' } }), 'compensation'],
      [one('core.noop', { credentialsRef: 'ref' }), 'credentials'],
      [one('core.noop', { agent: { agentId: 'core.openwop.agents.x', channel: 'stable' } }), 'agents.deployment'],
    ] as const) {
      const answer = await post(definition);
      expectRefusal(answer, 422, 'capability_required');
      expect(answer.body.details.requiredCapability).toBe(requiredCapability);
    }
  });

  it('refuses triggers that would silently do nothing', async () => {
    const triggers = [{ id: 't', type: 'channel-write' as const, config: { channel: 'c' } }];
    const answer = await post(withMore({ triggers, channels: { c: { reducer: 'append' } } }));
    expect(answer.status).toBe(422);
  });

  it('lets a tenant use the conformance nodes while the conformance switch is on', async () => {
    const id = await register(api(), one('core.conformance.side-effect'));
    const snapshot = await api().ended(await api().run(id));
    expect(snapshot.nodeStates.only.outputs.effectId).toMatch(/^[A-Za-z0-9_-]{43}$/);
  });

  it.each(MISSHAPEN)('refuses %s, and says where', async (_what, change, path) => {
    const answer = await post({ ...workflow([node('a')]), ...change });
    expect([400, 422]).toContain(answer.status);
    expect(answer.body.error).toBe('validation_error');
    const fields: Problem[] = answer.body.details.fields;
    expect(
      fields.some((problem) => path.test(problem.path)),
      JSON.stringify(fields),
    ).toBe(true);
  });

  // contract.md 3: an invalid definition is 422 `validation_error` that names the node and field.
  it.each(MISSHAPEN)('refuses %s with 422', async (_what, change) => {
    expectRefusal(await post({ ...workflow([node('a')]), ...change }), 422, 'validation_error');
  });
});

onEachStore('versions', (host) => {
  const api = (): Api => host().as('editor');

  /** Waits in its first node, then goes on to the one with the given name. */
  const waitsFor = (id: string, second: string): Definition => ({
    ...workflow([node('wait', 'core.delay', { config: { ms: 150 } }), node(second)], [edge('wait', second)]),
    id,
  });

  it('a run keeps the definition it began with when the workflow is replaced', async () => {
    const id = unique('wf');
    await register(api(), waitsFor(id, 'old'));
    const before = await api().run(id);
    await api().request('PUT', `${WORKFLOWS}/${id}`, waitsFor(id, 'new'));
    const after = await api().run(id);
    const [first, second] = [await api().ended(before), await api().ended(after)];
    expect(Object.keys(first.nodeStates)).toEqual(['wait', 'old']);
    expect(Object.keys(second.nodeStates)).toEqual(['wait', 'new']);
    expect([first.workflowVersion, second.workflowVersion]).toEqual([1, 2]);
  });

  it('a run goes on to its end when the workflow is removed, and stays readable', async () => {
    const id = unique('wf');
    await register(api(), waitsFor(id, 'old'));
    const runId = await api().run(id);
    expect((await api().request('DELETE', `${WORKFLOWS}/${id}`)).status).toBe(204);
    const snapshot = await api().ended(runId);
    expect(snapshot).toMatchObject({
      status: 'completed',
      workflowId: id,
      nodeStates: { old: { status: 'completed' } },
    });
    expect((await api().frames(`/v1/runs/${runId}/events?streamMode=values`)).frames.length).toBeGreaterThan(1);
  });

  it('a child gets the version that is current when it starts', async () => {
    const child = unique('wf');
    await register(api(), { ...workflow([node('first')]), id: child });
    const calls = node('call', 'core.subWorkflow', { config: { workflowId: child } });
    const { runId: parent } = await waitingRun(
      api(),
      await register(api(), workflow([approval('wait'), calls], line('wait', 'call'))),
    );
    await api().request('PUT', `${WORKFLOWS}/${child}`, { ...workflow([node('second')]), id: child });
    await resolve(api(), parent, 'wait', { action: 'accept' });
    const { childRuns } = await api().ended(parent);
    const snapshot = (await api().get(`/v1/runs/${childRuns[0].runId}`)).body;
    expect(Object.keys(snapshot.nodeStates)).toEqual(['second']);
  });

  it('a child that was removed meanwhile is unknown', async () => {
    const child = await register(api(), workflow([node('a')]));
    const calls = node('call', 'core.subWorkflow', { config: { workflowId: child } });
    const { runId: parent } = await waitingRun(
      api(),
      await register(api(), workflow([approval('wait'), calls], line('wait', 'call'))),
    );
    await api().request('DELETE', `${WORKFLOWS}/${child}`);
    await resolve(api(), parent, 'wait', { action: 'accept' });
    expect((await api().ended(parent)).error.code).toBe('unknown_child_workflow');
  });

  it('of a workflow that refers to a variable are each checked on their own', async () => {
    const id = unique('wf');
    const reads = (name: string): Definition => ({
      ...workflow([node('a', 'core.identity', { inputs: { x: variable(name, true) } })]),
      id,
    });
    await register(api(), reads('one'));
    await api().request('PUT', `${WORKFLOWS}/${id}`, reads('two'));
    const snapshot = await api().ended(await api().run(id, { inputs: { one: 1, two: 2 } }));
    expect(snapshot.nodeStates.a.outputs).toEqual({ x: 2 });
  });
});

describe('a host without the conformance switch', () => {
  it('has no conformance nodes', async () => {
    const host = await startTestHost('sqlite', inject('postgresUrl'), { conformance: false });
    try {
      for (const typeId of ['core.conformance.side-effect', 'core.conformance.hold', 'conformance.requiresMissing']) {
        expectRefusal(await host.as('owner').post(WORKFLOWS, one(typeId)), 422, 'validation_error');
      }
    } finally {
      await host.stop();
    }
  });
});
