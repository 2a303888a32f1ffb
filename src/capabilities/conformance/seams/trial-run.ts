import { isRefusal, NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { RunEvent } from '../../../protocol/running/events.ts';
import { isTerminalStatus } from '../../../protocol/running/runs.ts';
import { perform } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { RunRow } from '../../../store/log.ts';
import type { Caller } from '../../request.ts';
import type { Events } from '../../running/events/door.ts';
import type { RunCreation, Runs } from '../../running/runs/door.ts';

/** What the runs of test seams are started and read with. */
export interface TrialServices {
  readonly runs: Runs;
  readonly events: Events;
  readonly runtime: Runtime;
}

/** A run that a seam has started, once it has ended or waits for somebody. */
export interface TrialRun {
  readonly runId: string;
  readonly status: string;
  readonly events: readonly RunEvent[];
}

/** What a seam starts, as the caller. */
export type TrialRequest = Pick<RunCreation, 'workflowId'> & Partial<RunCreation>;

const WAIT_MS = 30_000;
const PAGE = 500;

/** Starts a run as the caller and waits, up to a limit, until nothing more happens by itself. */
export async function tryRun(
  services: TrialServices,
  caller: Caller,
  request: TrialRequest,
  signal: AbortSignal,
): Promise<TrialRun | Refusal> {
  const { runs, runtime } = services;
  const whole: RunCreation = { inputs: {}, configurable: {}, exclusive: false, ...request };
  const started = await perform(runtime, () => runs.create(caller, whole));
  if (isRefusal(started)) return started;
  return awaitRun(services, caller, started.runId, signal);
}

/** Waits, up to a limit, until nothing more happens to a run by itself. */
export async function awaitRun(
  services: TrialServices,
  caller: Caller,
  runId: string,
  signal: AbortSignal,
): Promise<TrialRun | Refusal> {
  const row = await services.runs.row(caller, runId);
  if (!row) return NOT_FOUND;
  const status = await settle(services, row, signal);
  return { runId, status, events: await eventsOf(services.runtime, row) };
}

/** The status in which the run rests, or that it had when it was last seen. */
async function settle({ events, runtime }: TrialServices, row: RunRow, signal: AbortSignal): Promise<string> {
  const giveUpAt = runtime.clock.now() + WAIT_MS;
  for (let after = -1, { status } = row; ; ) {
    const waitMs = Math.max(0, giveUpAt - runtime.clock.now());
    const polled = await events.poll({ tenant: row.tenant }, row.run_id, after, { waitMs, signal });
    if (!polled) return status;
    status = polled.status;
    after = polled.events.at(-1)?.sequence ?? after;
    const isQuiet = (isTerminalStatus(status) || status.startsWith('waiting-')) && after >= polled.sequence;
    if (isQuiet || signal.aborted || runtime.clock.now() >= giveUpAt) return status;
  }
}

/** The members of an event's payload, whatever its type. */
export function payloadOf({ payload }: RunEvent): JsonObject {
  return { ...payload };
}

/** The whole log of a run. */
export async function eventsOf({ reader }: Pick<Runtime, 'reader'>, row: RunRow): Promise<RunEvent[]> {
  const found: RunEvent[] = [];
  for (let after = -1; ; ) {
    const page = await reader.events(row, after, PAGE);
    found.push(...page.map(({ body }) => JSON.parse(body) as RunEvent));
    if (page.length < PAGE) return found;
    after = page.at(-1)!.sequence;
  }
}
