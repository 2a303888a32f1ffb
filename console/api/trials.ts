import { isTerminalStatus } from '../../src/protocol/running/run-status.ts';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import type { TrialRequest } from '../../src/protocol/running/trials.ts';
import { client } from './client.ts';

/** The only node of a trial, as the host calls it. */
const NODE_ID = 'node';

/** Runs one node by itself, until it has ended or waits for somebody. */
export async function tryNode(request: TrialRequest): Promise<RunSnapshot> {
  const { runId } = await client.tryNode(request);
  const until = ({ status, interrupt }: RunSnapshot): boolean => isTerminalStatus(status) || interrupt !== undefined;
  return client.waitForRun(runId, { until });
}

/** What the node of a trial gave. */
export function outputsOf({ nodeStates }: RunSnapshot): Readonly<Record<string, unknown>> | undefined {
  return nodeStates?.[NODE_ID]?.outputs;
}
