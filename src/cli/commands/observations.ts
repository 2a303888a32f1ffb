import { defined } from '../../protocol/format/json.ts';
import type { RunStatus } from '../../protocol/running/run-status.ts';
import type { Observation } from '../../protocol/starting/observations.ts';
import type { CommandInput } from '../command.ts';
import { UsageError } from '../exit.ts';
import { stringOption } from '../values.ts';

/** The flags that say what a heartbeat or commitment observes. */
export const OBSERVATION_FLAGS = {
  '--url <url>': 'observe a web page',
  '--key <namespace/key>': 'observe a stored value',
  '--runs-of <workflowId>': 'observe the runs of a workflow',
  '--runs-status <status>': 'only runs with this status',
};

/** Builds the observation; exactly one source must be given. */
export function observationFromOptions({ url, key, runsOf, runsStatus }: CommandInput['options']): Observation {
  const [namespace, ...rest] = stringOption(key)?.split('/') ?? [];
  const runs = defined({ workflowId: stringOption(runsOf), status: stringOption(runsStatus) as RunStatus | undefined });
  const sources: Observation[] = [
    ...(url === undefined ? [] : [{ http: { url: stringOption(url)! } }]),
    ...(namespace === undefined ? [] : [{ kv: { namespace, key: rest.join('/') } }]),
    ...(Object.keys(runs).length > 0 ? [{ runs }] : []),
  ];
  if (sources.length !== 1) throw new UsageError('Use exactly one of --url, --key and --runs-of.');
  return sources[0]!;
}
