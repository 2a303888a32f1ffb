import { expect, it } from 'vitest';
import type { WorkflowDefinition, WorkflowNode } from '../../src/protocol/running/workflows.ts';
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
  workflow,
} from '../support/definitions.ts';
import { approval, waitingRun } from '../support/interrupts.ts';
import { onOneStore } from '../support/stores.ts';

type Body = Answer['body'];

const SECRET = 'heron-at-the-weir';
const CODE = 7_318_264_905;
const NOTE: Pick<WorkflowDefinition, 'variables'> = {
  variables: [
    { name: 'note', type: 'string', sensitive: true },
    { name: 'code', type: 'number', sensitive: true },
  ],
};
const INPUTS = { note: SECRET, code: CODE };

/** Marks of the values, as they are and as a node may have changed them; too long to be in an id by chance. */
const TRACES = new RegExp(`heron|the.weir|${CODE}`, 'i');
const TAIL = /the.weir/i;

/** Nodes through which a value leaves the place that is marked, one after the other. */
const WAYS: readonly [string, readonly WorkflowNode[]][] = [
  [
    'another variable, and who reads it',
    [
      node('set', 'core.setVariable', { config: { name: 'copy' }, inputs: { value: variable('note') } }),
      node('get', 'core.getVariable', { config: { name: 'copy' } }),
      node('show', 'core.identity', { inputs: { text: variable('copy') } }),
    ],
  ],
  [
    'a channel that is not sensitive',
    [
      node('write', 'core.channelWrite', {
        config: { channelName: 'open', reducer: 'append' },
        inputs: { value: variable('note') },
      }),
      node('show', 'core.identity', { inputs: { text: variable('open') } }),
    ],
  ],
  [
    'an expression that changes it',
    [
      node('show', 'core.identity', {
        inputs: { text: expression('variables.note + " / " + string(variables.code)') },
      }),
    ],
  ],
  [
    'an expression in a node, and its result in a variable',
    [
      node('shout', 'vendor.capstan.data.evaluate', {
        config: { expression: 'inputs.text.split("-").join("_")' },
        inputs: { text: variable('note') },
      }),
      node('set', 'core.setVariable', { config: { name: 'loud' }, inputs: { value: connection('shout', 'value') } }),
      node('show', 'core.identity', { inputs: { text: variable('loud') } }),
    ],
  ],
  [
    'a template',
    [
      node('fill', 'core.openwop.data.string-format', {
        inputs: { template: fixed('Your word is {{w}}, {{c}}.'), w: variable('note'), c: variable('code') },
      }),
      node('show', 'core.identity', { inputs: { text: connection('fill', 'text') } }),
    ],
  ],
  [
    'a program that turns it around and back',
    [
      node('turn', 'vendor.capstan.code.javascript', {
        config: { code: 'return { turned: inputs.note.toUpperCase(), again: String(inputs.code) };' },
        inputs: { note: variable('note'), code: variable('code') },
      }),
      node('show', 'core.identity', { inputs: { text: connection('turn', 'turned') } }),
    ],
  ],
  [
    'JSON text and a list',
    [
      node('text', 'core.openwop.data.json-stringify', { inputs: { value: variable('note') } }),
      node('parts', 'core.openwop.data.array-map', {
        config: { template: '<{{x}}>' },
        inputs: { array: expression('[{"x": variables.note}]') },
      }),
    ],
  ],
];

onOneStore('sensitive values', (host) => {
  const api = (): Api => host().as('editor');
  const run = async (definition: WorkflowDefinition, inputs: object = INPUTS): Promise<Body> => {
    await register(api(), definition);
    return api().ended(await api().run(definition.id, { inputs }));
  };
  /** Everything that a reader can get of a run. */
  const everything = async (runId: string): Promise<string> => {
    const parts = [
      api().get(`/v1/runs/${runId}`),
      api().get(`/v1/runs/${runId}/events/poll`),
      api().get(`/v1/runs/${runId}/debug-bundle`),
      api().get(`/v1/runs/${runId}/annotations`),
    ].map(async (answer) => (await answer).text);
    const streams = ['updates', 'values', 'messages', 'debug'].map(async (mode) =>
      JSON.stringify((await api().frames(`/v1/runs/${runId}/events?streamMode=${mode}`)).frames),
    );
    return [...(await Promise.all([...parts, ...streams])), JSON.stringify(await api().events(runId))].join('\n');
  };

  it.each(WAYS)('stay masked through %s', async (_way, nodes) => {
    const definition = workflow(nodes, line(...nodes.map(({ id }) => id)), NOTE);
    const done = await run(definition);
    expect(done).toMatchObject({ status: 'completed' });
    expect(await everything(done.runId)).not.toMatch(TRACES);
  });

  it('stay masked in what a program says when it fails, whole or in parts', async () => {
    for (const code of ['throw new Error(inputs.note)', 'throw new Error(inputs.note.slice(6).toUpperCase())']) {
      const failing = node('fail', 'vendor.capstan.code.javascript', {
        config: { code },
        inputs: { note: variable('note') },
      });
      const failed = await run(workflow([failing], [], NOTE));
      expect(failed).toMatchObject({ status: 'failed', error: { code: 'code_error' } });
      expect(await everything(failed.runId)).not.toMatch(TRACES);
    }
  });

  it('stay masked in the result and the error of a call, as in the snapshot', async () => {
    const failing = node('show', 'vendor.capstan.code.javascript', {
      config: { code: 'throw new Error(inputs.note)' },
      inputs: { note: variable('note') },
    });
    for (const nodes of [...WAYS.map(([, each]) => each), [failing]]) {
      const definition = workflow([...nodes], line(...nodes.map(({ id }) => id)), NOTE);
      const workflowId = await register(api(), definition);
      const { body, text } = await api().post('/v1/host/capstan/calls', { workflowId, inputs: INPUTS });
      expect(text).not.toMatch(TRACES);
      const { nodeStates, status, error } = (await api().get(`/v1/runs/${body.runId}`)).body;
      const last = nodes.at(-1)!.id;
      expect(body).toMatchObject({ status, ...(error ? { error } : {}) });
      expect(body.outputs[last]).toEqual(nodeStates[last].outputs);
    }
  });

  it('stay masked in what the inbox says a question is about', async () => {
    const gate = approval('gate', {}, { inputs: { letter: expression('"Dear " + variables.note') } });
    const { runId } = await waitingRun(api(), await register(api(), workflow([gate], [], NOTE)), { inputs: INPUTS });
    const { body, text } = await api().get('/v1/host/capstan/inbox');
    expect(body.items.find((item: Body) => item.runId === runId)).toMatchObject({ about: expect.any(String) });
    expect(text).not.toMatch(TRACES);
  });

  it('are not looked for in the names of a result: ids of nodes and codes stay', async () => {
    const named = workflow([node(SECRET, 'core.identity', { inputs: { text: variable('note') } })], [], NOTE);
    const done = await api().post('/v1/host/capstan/calls', {
      workflowId: await register(api(), named),
      inputs: INPUTS,
    });
    expect(Object.keys(done.body.outputs)).toEqual([SECRET]);
    expect(JSON.stringify(Object.values(done.body.outputs))).not.toMatch(TRACES);
    const failing = workflow([node('a', 'core.fail', { config: { code: 'as_told' } })], [], NOTE);
    const inputs = { ...INPUTS, note: 'as_told' };
    const failed = await api().post('/v1/host/capstan/calls', { workflowId: await register(api(), failing), inputs });
    expect(failed.body.error.code).toBe('as_told');
  });

  it('reach the nodes themselves, and a replay repeats them', async () => {
    const definition = workflow(
      [
        node('set', 'core.setVariable', { config: { name: 'copy' }, inputs: { value: variable('note') } }),
        node('right', 'core.identity', { inputs: { ok: expression(`variables.copy == "${SECRET}"`) } }),
        node('done'),
      ],
      [edge('set', 'right'), edge('right', 'done', { condition: { type: 'equals', left: 'ok', right: true } })],
      NOTE,
    );
    const done = await run(definition);
    expect(done.nodeStates).toMatchObject({ right: { outputs: { ok: true } }, done: { status: 'completed' } });
    const fork = await api().post(`/v1/runs/${done.runId}:fork`, { mode: 'replay', fromSeq: 0 });
    const replay = await api().ended(fork.body.runId);
    const types = async (runId: string): Promise<string[]> => (await api().events(runId)).map(({ type }) => type);
    expect(await types(replay.runId)).toEqual(await types(done.runId));
    expect(await everything(replay.runId)).not.toMatch(TRACES);
  });

  it('stay masked in a child that does not mark its input, and in the parent of a child that marks its variable', async () => {
    const child = workflow(
      [
        node('fill', 'core.openwop.data.string-format', {
          inputs: { template: fixed('({{w}})'), w: variable('word') },
        }),
        node('set', 'core.setVariable', { config: { name: 'result' }, inputs: { value: connection('fill', 'text') } }),
      ],
      line('fill', 'set'),
    );
    await register(api(), child);
    const marked = workflow(
      [
        node('set', 'core.setVariable', {
          config: { name: 'own' },
          inputs: { value: expression('inputs.half + "-at-the-weir"') },
        }),
      ],
      [],
      {
        variables: [
          { name: 'own', type: 'string', sensitive: true },
          { name: 'half', type: 'string' },
        ],
      },
    );
    await register(api(), marked);
    const definition = workflow(
      [
        node('call', 'core.subWorkflow', {
          config: { workflowId: child.id, inputMapping: { word: 'note' }, outputMapping: { back: 'result' } },
        }),
        node('show', 'core.identity', { inputs: { text: variable('back') } }),
        node('wait', 'core.delay', { config: { delayMs: 5 } }),
        node('other', 'core.subWorkflow', {
          config: { workflowId: marked.id, inputMapping: { half: 'half' }, outputMapping: { own: 'own' } },
        }),
        node('after', 'core.identity', { inputs: { text: variable('own') } }),
      ],
      line('call', 'show', 'wait', 'other', 'after'),
      NOTE,
    );
    const done = await run(definition, { ...INPUTS, half: 'her' + 'on' });
    expect(done).toMatchObject({ status: 'completed' });
    const families = (await api().events(done.runId)).flatMap(({ type, payload }) =>
      type === 'node.dispatched' ? [payload.childRunId as string] : [],
    );
    expect(families).toHaveLength(2);
    expect(await everything(families[0]!)).not.toMatch(TRACES);
    for (const runId of [done.runId, families[1]!]) expect(await everything(runId)).not.toMatch(TAIL);
    for (const mode of ['replay', 'branch']) {
      const { length } = await api().events(done.runId);
      const body = { mode, fromSeq: mode === 'replay' ? 0 : length - 2 };
      const fork = await api().post(`/v1/runs/${done.runId}:fork`, body);
      expect(fork.status, fork.text).toBe(201);
      await api().ended(fork.body.runId);
      expect(await everything(fork.body.runId)).not.toMatch(TAIL);
    }
  });

  it('are not remembered: memory has the mask', async () => {
    const memoryRef = unique('notes');
    const remember = node('remember', 'vendor.capstan.memory.remember', {
      config: { memoryRef },
      inputs: { content: variable('note') },
    });
    const done = await run(workflow([remember], [], NOTE));
    expect(done).toMatchObject({ status: 'completed' });
    const { text, body } = await api().get(`/v1/host/capstan/memory?memoryRef=${memoryRef}`);
    expect(body.items).toHaveLength(1);
    expect(text).not.toMatch(TRACES);
    expect(await everything(done.runId)).not.toMatch(TRACES);
  });

  it('change nothing in a run that has none', async () => {
    const nodes = [node('show', 'core.identity', { inputs: { text: variable('note') } })];
    const done = await run(workflow(nodes));
    expect(done.nodeStates.show.outputs).toEqual({ text: SECRET });
    expect(done.inputs).toEqual(INPUTS);
  });

  it('do not make an event unreadable when they are words of the protocol', async () => {
    const nodes = [node('approval', 'core.identity', { inputs: { text: variable('note') } })];
    const done = await run(workflow(nodes, [], NOTE), { note: 'approval' });
    expect(done).toMatchObject({ status: 'completed', nodeStates: { approval: { outputs: { text: '[REDACTED]' } } } });
    const started = (await api().events(done.runId)).find(({ type }) => type === 'node.started');
    expect(started.payload.nodeId).toBe('approval');
  });
});
