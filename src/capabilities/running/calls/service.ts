import { statusOf } from '../../../engine/run/run.ts';
import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import type { CallRequest } from '../../../protocol/running/calls.ts';
import type { Change } from '../../../runtime/change.ts';
import type { AppendListener } from '../../../runtime/hub.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { StartedRun } from '../../../runtime/start-run.ts';
import { withTimeout } from '../../../system/clock.ts';
import type { Caller } from '../../request.ts';
import { type Events, isSettled, waitUntilSettled } from '../events/door.ts';
import type { RunCreation, Runs } from '../runs/door.ts';
import { type RunResult, resultOfRun } from './door.ts';

/** How long a call listens to its run before it reads the log instead: another host may have taken the run over. */
const LISTEN_MS = 1_000;

/**
 * Runs that whoever starts them waits for. Most end within milliseconds, on the host that took the call: it hears of the
 * end from the commit itself, and reads nothing.
 */
export class CallService {
  readonly #runtime: Runtime;
  readonly #needs: { readonly runs: Pick<Runs, 'create'>; readonly events: Pick<Events, 'poll'> };
  /** The runs that are listened to. */
  readonly #awaited = new Map<string, AwaitedRun>();

  constructor(runtime: Runtime, needs: { readonly runs: Pick<Runs, 'create'>; readonly events: Pick<Events, 'poll'> }) {
    this.#runtime = runtime;
    this.#needs = needs;
  }

  /** Starts the run of a call. From its commit on it is listened to; whoever performs the change asks for the result. */
  async start(
    caller: Caller,
    { workflowId, inputs = {}, configurable = {}, tags, metadata }: CallRequest,
    trace: RunCreation['trace'],
  ): Promise<Change<StartedRun> | Refusal> {
    const asked = { workflowId, inputs, configurable, tags, metadata, trace, exclusive: false, takesFirstSteps: true };
    const start = await this.#needs.runs.create(caller, asked);
    if (isRefusal(start)) return start;
    const listen = () => void this.#awaited.set(start.result.runId, {});
    // Listens before the start is announced: the run may have ended by then.
    return { ...start, announce: [listen, ...start.announce] };
  }

  readonly onAppend: AppendListener = ({ run }) => {
    const awaited = this.#awaited.get(run.facts.runId);
    if (!awaited || !isSettled(statusOf(run))) return;
    awaited.result ??= resultOfRun(run);
    awaited.listeners?.resolve(awaited.result);
  };

  /**
   * Waits until a run has ended or needs a person, the time is up or whoever waits has gone; undefined if the run is gone.
   * The signal of `waiting` is not asked for if the run has ended already.
   */
  async result(
    { subject }: Caller,
    runId: string,
    waitMs: number,
    waiting: { readonly signal: AbortSignal },
  ): Promise<RunResult | undefined> {
    const { clock, reader } = this.#runtime;
    const giveUpAt = clock.now() + waitMs;
    const awaited = this.#awaited.get(runId);
    const listenMs = Math.min(waitMs, LISTEN_MS);
    const heard = awaited && (awaited.result ?? (await withTimeout(clock, listenMs, untilHeard(awaited))));
    this.#awaited.delete(runId);
    if (heard) return heard;
    const row = await reader.row(subject, runId);
    if (!row) return undefined;
    const { signal } = waiting;
    const leftMs = Math.max(0, giveUpAt - clock.now());
    await waitUntilSettled({ events: this.#needs.events, clock }, row, { waitMs: leftMs, signal });
    return reader.view(subject, runId, ({ run }) => resultOfRun(run));
  }
}

/** A run that is listened to. Most have ended before anybody waits for them. */
interface AwaitedRun {
  result?: RunResult;
  /** A call and its retries, which wait side by side. */
  listeners?: PromiseWithResolvers<RunResult>;
}

function untilHeard(awaited: AwaitedRun): Promise<RunResult> {
  awaited.listeners ??= Promise.withResolvers();
  return awaited.listeners.promise;
}
