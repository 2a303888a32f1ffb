import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { edge, node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { perform } from '../../../runtime/change.ts';
import { RunService } from '../../running/runs/service.ts';
import { developerLog, endLog } from './run-log.ts';

const host = await openCapabilityHost();
afterAll(() => host.close());
const { runtime } = host;
const runs = new RunService(host, { models: [] });

let lines: { level: string; text: string; fields: Record<string, unknown> }[] = [];
beforeEach(() => {
  lines = [];
});
const add =
  (level: string) =>
  (fields: object, text: string): void =>
    void lines.push({ level, text, fields: { ...fields } });
const log = { debug: add('debug'), info: add('info'), warn: add('warn'), error: add('error') };

const condition = { type: 'expression' as const, expression: '1 / 0 > 0' };
const failing = workflow(
  [node('a'), node('b'), node('stop', 'core.fail', { config: { message: 'No card.' } })],
  [edge('a', 'b', { condition }), edge('a', 'stop')],
);
await registerShared(runtime, failing);

async function run(): Promise<string> {
  const asked = { workflowId: failing.id, inputs: {}, configurable: {}, exclusive: false };
  const started = await perform(runtime, () => runs.create(callerAs('ada'), asked));
  if (isRefusal(started)) throw new Error(started.message);
  await host.runToRest(started.runId);
  return started.runId;
}

describe('the log of runs', () => {
  it('tells operators how a run ended, by its code alone', async () => {
    host.onAppend.push(endLog(log));
    const runId = await run();
    expect(lines).toEqual([
      {
        level: 'info',
        text: 'run ended',
        fields: { runId, tenant: 'alpha', workflowId: failing.id, status: 'failed', errorCode: expect.any(String) },
      },
    ]);
    expect(JSON.stringify(lines)).not.toContain('No card.');
  });

  it('tells developers what happens, and why something fails', async () => {
    host.onAppend.push(developerLog(log));
    await run();
    const told = lines.filter(({ text }) => text.startsWith(failing.id)).map(({ level, text }) => [level, text]);
    expect(told).toEqual([
      ['info', `${failing.id}: started`],
      ['warn', expect.stringMatching(/The condition of the edge from "a" to "b" failed .* division by zero\./)],
      ['warn', `${failing.id}: stop failed: No card.`],
      ['warn', `${failing.id}: failed: No card.`],
    ]);
  });
});
