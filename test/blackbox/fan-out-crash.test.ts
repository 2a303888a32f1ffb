import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { freshFolder } from '../support/database.ts';
import { edge, node, register, workflow } from '../support/definitions.ts';
import { approval, resolve } from '../support/interrupts.ts';
import { type HostProcess, spawnHost } from '../support/process.ts';
import { until } from '../support/until.ts';

/**
 * Goal: workers that run at the same time survive their host.
 * Method: a host in its own process is killed once while its workers wait, and once after some of them have ended.
 */

type Body = Answer['body'];

describe('a host that dies while workers run at the same time', () => {
  const folder = freshFolder();
  const hosts: HostProcess[] = [];
  afterAll(async () => {
    for (const each of hosts) each.signal('SIGKILL');
    await Promise.all(hosts.map(({ exit }) => exit));
    folder.remove();
  });
  const startHost = async (): Promise<Api> => {
    const started = await spawnHost({ CAPSTAN_DATA: join(folder.path, 'data') });
    hosts.push(started);
    return started.as('editor');
  };
  const kill = async (): Promise<void> => {
    hosts.at(-1)!.signal('SIGKILL');
    await hosts.at(-1)!.exit;
  };

  it('is followed by one that starts none of them again, and counts each end once', async () => {
    let api = await startHost();
    const worker = await register(
      api,
      workflow([approval('sign')], [], { variables: [{ name: 'found', type: 'string', defaultValue: 'it' }] }),
    );
    const plan = [{ kind: 'next-worker', nextWorkerIds: [worker, worker, worker] }, { kind: 'terminate' }];
    const nodes = [
      node('supervisor', 'core.orchestrator.supervisor', { config: { mockDispatchPlan: plan } }),
      node('dispatch', 'core.dispatch', { config: { fanOutPolicy: 'parallel', outputMapping: { got: 'found' } } }),
    ];
    const variables = [{ name: 'got', type: 'string' as const, defaultValue: 'nothing' }];
    const runId = await api.run(await register(api, workflow(nodes, [edge('supervisor', 'dispatch')], { variables })));
    const payloads = async (type: string): Promise<Body[]> =>
      (await api.events(runId)).filter((event: Body) => event.type === type).map(({ payload }: Body) => payload);
    const children = async (): Promise<string[]> =>
      (await payloads('node.dispatched')).map(({ childRunId }) => childRunId);
    const sign = async (childRunId: string): Promise<void> => {
      const waiting = async () => (await api.get(`/v1/runs/${childRunId}`)).body.status;
      await until(waiting, (status) => status === 'waiting-approval');
      await resolve(api, childRunId, 'sign', { action: 'accept' });
      await api.ended(childRunId);
    };
    const started = await until(children, (ids) => ids.length === 3);

    await kill();
    api = await startHost();
    await sign(started[1]!);
    await kill();
    api = await startHost();
    await sign(started[2]!);
    await sign(started[0]!);

    const ended = await api.ended(runId);
    expect([ended.status, ended.variables.got]).toEqual(['completed', 'it']);
    expect(await children()).toEqual(started);
    const phases = (await payloads('core.workflowChain.event')).map(({ phase, childRunId }) => [phase, childRunId]);
    const ends = phases.filter(([phase]) => phase === 'child.completed').map(([, childRunId]) => childRunId);
    expect([...ends].sort()).toEqual([...started].sort());
    expect(phases.filter(([phase]) => phase === 'output.harvested').map(([, childRunId]) => childRunId)).toEqual(ends);
    expect(await payloads('runOrchestrator.decided')).toHaveLength(2);
  });
});
