import { describe, expect, it } from 'vitest';
import { node, workflow } from '../../../test/support/definitions.ts';
import { TestRun } from '../../engine/testing.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import { NodeFailure } from '../node-failure.ts';
import type { ActivityReport, Tracing } from '../tracing.ts';
import type { SeamName } from './seams.ts';
import { traceEffect } from './trace-effect.ts';

/** Goal: a trace shows what an effect was and how it came out, and nothing of what it carried. */

const CANARY = 'walrus-4711';

/** What is reported of an effect that gives this result, or throws it. */
async function reportOf(seam: SeamName, request: object, outcome: unknown, config: JsonObject = {}) {
  const reports: (ActivityReport | undefined)[] = [];
  const tracing: Tracing = {
    traceOf: () => ({ traceId: 'a'.repeat(32), flags: '01' }),
    isObserved: () => true,
    observe: async (_activity, perform, report) => {
      try {
        const result = await perform();
        reports.push(report({ result }));
        return result;
      } catch (error) {
        reports.push(report({ error }));
        throw error;
      }
    },
  };
  const { run } = new TestRun(workflow([node('a')]));
  const effect = { run, node: { id: 'a', typeId: 'core.noop', config }, attempt: 0, seam, request, effectId: 'e' };
  const { observe } = traceEffect({ tracing }, effect);
  const perform = async () => {
    if (outcome instanceof Error) throw outcome;
    return outcome;
  };
  await observe?.(perform).catch(() => {});
  return reports;
}

const failure = (code: string) => new NodeFailure({ code, message: CANARY, retryable: false });

describe('the report of an effect', () => {
  it('does not name a model that there is none of', async () => {
    const asked = { provider: CANARY, model: CANARY };
    for (const code of ['capability_not_provided', 'provider_policy_denied']) {
      const [report] = await reportOf('model', asked, failure(code));
      expect(report).toMatchObject({ provider: 'model', errorCode: code });
      expect(JSON.stringify(report)).not.toContain(CANARY);
    }
  });

  it('names the server of a request only if the definition does', async () => {
    const request = { url: `https://${CANARY}.example/${CANARY}?q=${CANARY}`, method: 'GET' };
    const [computed] = await reportOf('http', request, { status: 200 }, { url: 'https://api.example/' });
    expect(JSON.stringify(computed)).not.toContain(CANARY);
    const named = { url: `https://api.example/${CANARY}`, method: CANARY };
    const [report] = await reportOf('http', named, { status: 200 }, { url: 'https://api.example/' });
    expect(report!.attributes).toMatchObject({ 'server.address': 'api.example', 'server.port': 443 });
    expect(JSON.stringify(report)).not.toContain(CANARY);
  });

  it('does not name a tool that a model made up', async () => {
    const missing = { error: { code: 'tool_not_found', message: CANARY }, durationMs: 1 };
    const [report] = await reportOf('tool', { name: CANARY }, missing);
    expect(report).toMatchObject({ provider: 'tool', errorCode: 'tool_not_found' });
    expect(JSON.stringify(report)).not.toContain(CANARY);
  });

  it('is not given while a tool waits for its run', async () => {
    expect(await reportOf('tool', { name: 'workflow' }, new Error('waiting for a child run'))).toEqual([undefined]);
  });

  it('says of own code only that it was performed', async () => {
    const [report] = await reportOf('step', { name: CANARY }, new Error(CANARY));
    expect(report).toMatchObject({ provider: 'step', errorCode: 'node_failed' });
    expect(JSON.stringify(report)).not.toContain(CANARY);
  });
});
