import { describe, expect, it } from 'vitest';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { configProblems, run, typeOf } from '../../../../test/support/node-context.ts';
import { completeNode } from '../../../engine/run/outcome.ts';
import { TestRun } from '../../../engine/testing.ts';
import type { Outcome } from '../../../runtime/node-type.ts';
import { recordEvent } from '../../../runtime/recording.ts';

describe.each(['core.noop', 'core.start', 'core.end'])('%s', (typeId) => {
  it('is done at once and gives nothing, not even what it was given', () => {
    expect(run(typeId, { inputs: { secret: 'x' }, declared: { secret: 'x' }, config: { any: 1 } })).toEqual({
      done: {},
    });
  });

  it('takes any config only if it stands for nothing', () => {
    const isNoop = typeId === 'core.noop';
    expect(configProblems(typeId, { any: { thing: 1 } })).toEqual(isNoop ? [] : ['.any']);
  });
});

describe('core.identity', () => {
  it('copies each declared port to the output of the same name', () => {
    const declared = { a: 1, b: { c: [null] }, output: 'x' };
    expect(run('core.identity', { declared, inputs: { ...declared, more: 2 } })).toEqual({
      done: { outputs: declared },
    });
  });

  it('gives nothing where it has no ports, whatever the run was given', () => {
    expect(run('core.identity', { inputs: { payload: 1 } })).toEqual({ done: {} });
  });
});

describe('core.fail', () => {
  it('fails with the code and message of its config', () => {
    expect(run('core.fail', { config: { code: 'boom', message: 'Boom.' } })).toEqual({
      failed: { code: 'boom', message: 'Boom.' },
    });
  });

  it('has a code and a message of its own', () => {
    expect(run('core.fail')).toMatchObject({
      failed: { code: 'conformance_test_failure', message: expect.any(String) },
    });
  });

  it('is refused with an empty code or message', () => {
    expect(configProblems('core.fail', { code: '', message: '' })).toEqual(['.code', '.message']);
  });
});

describe('core.setVariable', () => {
  it('writes the value of its config', () => {
    expect(run('core.setVariable', { config: { name: 'v', value: [1] } })).toMatchObject({
      done: { variables: { v: [1] } },
    });
  });

  it('prefers the value of its input, null included', () => {
    const given = { config: { name: 'v', value: 'config' }, declared: { value: null } };
    expect(run('core.setVariable', given)).toMatchObject({ done: { variables: { v: null } } });
  });

  it('needs a name', () => {
    expect(configProblems('core.setVariable', {})).not.toEqual([]);
    expect(configProblems('core.setVariable', { name: '' })).toEqual(['.name']);
    expect(configProblems('core.setVariable', { name: 'v' })).toEqual([]);
  });

  it.each(['__proto__', 'constructor'])('writes a variable that is called %s', (name) => {
    const outcome = run('core.setVariable', { config: { name, value: 1 } }) as { done: { variables: object } };
    expect(Object.entries(outcome.done.variables)).toEqual([[name, 1]]);
  });

  // `variable.changed` is masked for a sensitive variable; what else the node leaves behind must not give it away.
  it('shows nobody the value of a sensitive variable', () => {
    const definition = workflow([node('set', 'core.setVariable', { config: { name: 'pin', value: 'XYZZY' } })], [], {
      variables: [{ name: 'pin', type: 'string', sensitive: true }],
    });
    const story = new TestRun(definition).settle();
    const outcome = run('core.setVariable', { config: { name: 'pin', value: 'XYZZY' } }) as Extract<
      Outcome,
      { done: unknown }
    >;
    const events = completeNode(story.run, 'set', outcome.done, story.now);
    story.record(...events).settle();
    const shown = story.events.map(
      (event) => recordEvent(story, event, { sequence: 0, time: 0 }, () => 'digest').stored.body,
    );
    expect(shown.filter((body) => body.includes('XYZZY'))).toEqual([]);
  });
});

describe('core.getVariable', () => {
  it('gives the value of a variable', () => {
    expect(run('core.getVariable', { config: { name: 'v' }, variables: { v: null } })).toEqual({
      done: { outputs: { value: null } },
    });
  });

  it('gives nothing where there is no such variable', () => {
    expect(run('core.getVariable', { config: { name: 'v' } })).toEqual({ done: {} });
  });

  it.each(['constructor', 'toString', '__proto__'])('finds no variable called %s in what all objects have', (name) => {
    expect(run('core.getVariable', { config: { name }, variables: { other: 1 } })).toEqual({ done: {} });
  });

  it('needs a name', () => {
    expect(configProblems('core.getVariable', {})).not.toEqual([]);
  });
});

describe('the role of a node', () => {
  it.each(['core.noop', 'core.identity', 'core.fail', 'core.delay', 'core.setVariable', 'core.merge'])(
    '%s is pure',
    (typeId) => {
      expect(typeOf(typeId).role).toBe('pure');
    },
  );

  it.each(['core.ai.callPrompt', 'core.subWorkflow', 'core.conformance.side-effect'])(
    '%s touches the world',
    (typeId) => {
      expect(typeOf(typeId).role).toBe('side-effect');
    },
  );
});
