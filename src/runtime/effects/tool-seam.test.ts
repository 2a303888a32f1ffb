import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../test/support/manual-clock.ts';
import { TemporaryFailure } from '../../system/temporary-failure.ts';
import { NodeFailure } from '../node-type.ts';
import { type CallableTool, fixedTools, type Tool, ToolFailure } from '../tools.ts';
import { localSchemaValidator } from '../validation/schema-validator.ts';
import type { Firing } from './firing.ts';
import { type ToolRequest, toolSeam } from './tool-seam.ts';

const firing: Firing = {
  effectId: 'effect-1',
  signal: new AbortController().signal,
  tenant: 'alpha',
  runId: 'run-1',
  nodeId: 'a',
};

const echo: Tool = {
  name: 'test:echo',
  description: 'Says it again.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  transport: 'native',
  safetyTier: 'pure',
  egress: 'none',
  replayPolicy: 'deterministic',
  call: async ({ text }) => ({ text }),
};

function call(
  tool: Tool | undefined,
  name = 'test:echo',
  args: Record<string, unknown> = { text: 'hello' },
  more: Partial<ToolRequest> = {},
) {
  const seam = toolSeam([fixedTools('test', tool ? [tool] : [])], {
    clock: new ManualClock(),
    schemas: localSchemaValidator(),
  });
  return seam({ agentId: 'core.test.agent', name, arguments: args, ...more }, firing);
}

describe('the way to tools', () => {
  it('leads to the tool of that name, which is told who calls', async () => {
    const told: unknown[] = [];
    const tool: Tool = { ...echo, call: async (args, by) => void told.push(args, by.agentId, by.tenant, by.effectId) };
    expect(await call(tool)).toEqual({ outcome: null, durationMs: 0 });
    expect(told).toEqual([{ text: 'hello' }, 'core.test.agent', 'alpha', 'effect-1']);
  });

  it.each([
    ['a tool that nobody has', undefined, 'test:echo', { text: 'x' }, 'tool_not_found'],
    ['a scope that nobody has', echo, 'other:echo', { text: 'x' }, 'tool_not_found'],
    ['a name without a scope', echo, 'echo', { text: 'x' }, 'tool_not_found'],
    ['arguments that do not fit', echo, 'test:echo', {}, 'tool_arguments_invalid'],
    ['a schema that is none', { ...echo, inputSchema: { type: 7 } }, 'test:echo', {}, 'tool_arguments_invalid'],
    [
      'a result that is too long',
      { ...echo, call: async () => 'x'.repeat(200_000) },
      'test:echo',
      { text: 'x' },
      'tool_result_too_large',
    ],
  ] as const)('gives back what the model can learn from: %s', async (_what, tool, name, args, code) => {
    expect(await call(tool, name, args)).toMatchObject({ error: { code } });
  });

  it('does not call arguments invalid that could not be checked now', async () => {
    const validate = async (): Promise<never> => {
      throw new TemporaryFailure('The machine is too busy.');
    };
    const schemas = { ...localSchemaValidator(), validate };
    const seam = toolSeam([fixedTools('test', [echo])], { clock: new ManualClock(), schemas });
    const asked = seam({ agentId: 'core.test.agent', name: 'test:echo', arguments: { text: 'x' } }, firing);
    await expect(asked).rejects.toThrow(TemporaryFailure);
  });

  it('leads to workflows through child runs, which may take their time', async () => {
    const { call: _call, ...facts } = echo as CallableTool;
    const tool: Tool = { ...facts, workflowId: 'wf' };
    const outcomes = ['completed', 'failed'] as const;
    const [done, lost] = await Promise.all(
      outcomes.map((status) =>
        call(
          tool,
          'test:echo',
          { text: 'x' },
          {
            run: async ({ workflowId, variables }) => ({
              runId: `run-of-${workflowId}`,
              status,
              variables,
              shown: { last: { said: variables.text } },
            }),
          },
        ),
      ),
    );
    expect(done).toMatchObject({
      childRunId: 'run-of-wf',
      outcome: { runId: 'run-of-wf', outputs: { last: { said: 'x' } } },
    });
    expect(lost).toMatchObject({ childRunId: 'run-of-wf', error: { code: 'child_failed' } });
    const wait = () => Promise.reject(new Error('it is not over yet'));
    await expect(call(tool, 'test:echo', { text: 'x' }, { run: wait })).rejects.toThrow('it is not over yet');
    expect(await call(tool)).toMatchObject({ error: { code: 'tool_not_found' } });
  });

  it('tells why a tool failed, and leaves alone what is no failure of the tool', async () => {
    const failing = (error: Error): Tool => ({ ...echo, call: () => Promise.reject(error) });
    expect(await call(failing(new ToolFailure('no such page')))).toMatchObject({
      error: { code: 'tool_failed', message: 'no such page' },
    });
    const denied = new NodeFailure({ code: 'egress_denied', message: 'That is a private address.', retryable: false });
    expect(await call(failing(denied))).toMatchObject({ error: { code: 'egress_denied' } });
    await expect(call(failing(new Error('the store is away')))).rejects.toThrow('the store is away');
  });
});
