import { defined } from '../../protocol/format/json.ts';
import type { RunStatus } from '../../protocol/running/run-status.ts';
import type { Observation } from '../../protocol/starting/observations.ts';
import type { Given } from '../command.ts';
import { UsageError } from '../exit.ts';
import { text } from '../values.ts';

/** What heartbeats and commitments look at, as it is given on the command line. */
export const OBSERVATION_FLAGS = {
  '--url <url>': 'look at a page',
  '--key <namespace/key>': 'look at a stored value',
  '--runs-of <workflowId>': 'look at the runs of a workflow',
  '--runs-status <status>': 'of those, at the ones with this status',
};

export function observationGiven({ url, key, runsOf, runsStatus }: Given['options']): Observation {
  const [namespace, ...rest] = text(key)?.split('/') ?? [];
  const runs = defined({ workflowId: text(runsOf), status: text(runsStatus) as RunStatus | undefined });
  const given: Observation[] = [
    ...(url === undefined ? [] : [{ http: { url: text(url)! } }]),
    ...(namespace === undefined ? [] : [{ kv: { namespace, key: rest.join('/') } }]),
    ...(Object.keys(runs).length > 0 ? [{ runs }] : []),
  ];
  if (given.length !== 1) throw new UsageError('Give one of --url, --key and --runs-of.');
  return given[0]!;
}
