import { snapshotOf } from '../../../engine/run/snapshot.ts';
import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import { changeOf } from '../../../runtime/change.ts';
import { factsOf, identityOf } from '../../../runtime/run-row.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { WorkHandler, WorkResult } from '../../../runtime/work-kind.ts';
import type { RunRow } from '../../../store/log.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { timestamp } from '../../timestamps.ts';
import { findTrigger, noteError, readTriggerWorkId, type TriggerRow } from './records.ts';
import { chainOf, inputsFor, passes, refuseChain } from './rules.ts';
import type { TriggeredRuns } from './starting.ts';

/** How long an event waits if the host can start no runs for now. */
const RETRY_MS = 30_000;

/** Events that a host handles at the same time. */
export const EVENTS_AT_ONCE = 20;

/** What the handler uses. */
interface EventParts {
  readonly runtime: Runtime;
  readonly runs: TriggeredRuns;
}

/**
 * The handler of the work items of events. The item was added in the unit of its event, and it ends in the unit that
 * starts the run: each event and trigger gets one run or none, whichever host dies when.
 */
export function eventHandler({ runtime, runs }: EventParts): WorkHandler {
  return async ({ work_id, tenant }) => {
    const { triggerId, runId, sequence } = readTriggerWorkId(work_id);
    const [trigger] = await runtime.store.read<TriggerRow>(findTrigger({ tenant }, triggerId));
    const row = trigger?.is_enabled === 1 ? await runtime.reader.row({ tenant }, runId) : undefined;
    if (!trigger || !row) return {};
    const scope = await scopeOf(runtime, row, sequence);
    const compiled = runs.compiled(trigger);
    if (!passes(compiled, scope)) return {};
    const chain = (await chainBefore(runtime, row)) + 1;
    const { type: eventType } = scope.event;
    const inputs = refuseChain(chain) ?? inputsFor(compiled, scope, { event: scope.event });
    if (isRefusal(inputs)) return refused(runtime, trigger, inputs);
    const mark = { triggerId, eventType, causedByRunId: runId, chain };
    const start = await runs.start(trigger, inputs, mark);
    return isRefusal(start) ? refused(runtime, trigger, start) : { change: start };
  };
}

/** What expressions read: the event as streams show it, and the run that it belongs to, sensitive values masked. */
async function scopeOf({ reader }: Runtime, row: RunRow, sequence: number) {
  const [stored] = await reader.events(row, sequence - 1, 1);
  const event = JSON.parse(stored!.body) as { readonly type: string };
  const run = await reader.view({ tenant: row.tenant }, row.run_id, (held) => snapshotOf(held.run, sha256Hex));
  const states = Object.entries(run?.nodeStates ?? {});
  return { event, run, outputs: Object.fromEntries(states.map(([nodeId, { outputs }]) => [nodeId, outputs ?? {}])) };
}

/** The chain goes on through child runs, which have no metadata of their own. */
async function chainBefore({ reader }: Runtime, row: RunRow): Promise<number> {
  const { rootRunId } = identityOf(row);
  const root = rootRunId === undefined ? row : await reader.row({ tenant: row.tenant }, rootRunId);
  return root ? chainOf(factsOf(root).metadata) : 0;
}

/** A host that is short of something tries again later; any other refusal is noted with the trigger. */
function refused({ clock, log }: Runtime, trigger: TriggerRow, refusal: Refusal): WorkResult {
  if (refusal.headers?.['Retry-After'] !== undefined) return { dueAgainAt: clock.now() + RETRY_MS };
  const { refused: code, message } = refusal;
  log.warn({ triggerId: trigger.trigger_id, code }, 'the event of a trigger could not start a run');
  const error = JSON.stringify({ code, message, at: timestamp(clock.now()) });
  return { change: changeOf(undefined, [noteError(trigger, error)]) };
}
