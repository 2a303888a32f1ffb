import { afterAll, describe, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { node, unique, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { EventService } from '../../running/events/service.ts';
import { RunService } from '../../running/runs/service.ts';
import { ToolRuns, type Waiting } from './tool-runs.ts';

const host = await openCapabilityHost();
afterAll(() => host.close());

const { runtime } = host;
const runs = new RunService(host, { models: [] });
const toolRuns = new ToolRuns(runtime, { runs, events: new EventService(runtime) });
const ada = callerAs('ada');
const tool = workflow([node('a')]);
await registerShared(runtime, tool);

const start = (key?: string, args = {}) => toolRuns.start(ada, { name: tool.id, arguments: args, key });

describe('a call', () => {
  it('without a key starts a run each time', async () => {
    expect(await start()).not.toBe(await start());
  });

  it('with a key starts one run, also when it is made twice at the same time', async () => {
    const key = unique('key');
    const [first, second] = await Promise.all([start(key), start(key)]);
    expect(first).toMatch(/^run-/);
    expect(second).toBe(first);
    expect(await start(key)).toBe(first);
  });

  it('with the key of another call, or one that is too long, is refused', async () => {
    const key = unique('key');
    await start(key);
    expect(await start(key, { other: true })).toMatchObject({ refused: 'idempotency_key_mismatch' });
    expect(await start('k'.repeat(256))).toMatchObject({ refused: 'validation_error' });
  });

  it('waits for its run and reports every node that completes', async () => {
    const completed: string[] = [];
    const waiting: Waiting = {
      origin: 'http://host',
      signal: new AbortController().signal,
      onNodeCompleted: async (nodeId) => void completed.push(nodeId),
    };
    const runId = (await start()) as string;
    expect(await toolRuns.outcome(ada, runId, waiting)).toMatchObject({
      isError: false,
      structuredContent: { runId, status: 'completed' },
    });
    expect(completed).toEqual(['a']);
  });
});
