import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { BoundedCache } from '../../../runtime/bounded-cache.ts';
import type { Change } from '../../../runtime/change.ts';
import type { StartedRun } from '../../../runtime/start-run.ts';
import type { Host } from '../../capability.ts';
import type { Runs } from '../../running/runs/door.ts';
import { RunCreation } from '../starter/run-creation.ts';
import { configOf, runSubjectOf } from './document.ts';
import type { TriggerRow } from './records.ts';
import { type CompiledTrigger, compileTrigger, type TriggerMark } from './rules.ts';

/** Triggers whose expressions stay compiled. */
const COMPILED_MAX = 1_000;

/** Starts the runs of triggers, and compiles their expressions once. */
export class TriggeredRuns {
  readonly #host: Pick<Host, 'runtime' | 'executor'>;
  readonly #creation: RunCreation;
  readonly #compiled = new BoundedCache<string, CompiledTrigger>(COMPILED_MAX);

  constructor(host: Pick<Host, 'runtime' | 'executor'>, runs: Pick<Runs, 'check'>) {
    this.#host = host;
    this.#creation = new RunCreation(host.runtime, runs);
  }

  compiled(row: TriggerRow): CompiledTrigger {
    const key = `${row.trigger_id} ${row.revision}`;
    const known = this.#compiled.get(key);
    if (known) return known;
    const compiled = compileTrigger(row.type, configOf(row));
    this.#compiled.set(key, compiled);
    return compiled;
  }

  /**
   * A run of the workflow's current version. What it is given comes from outside, so it is marked as untrusted. Whoever
   * registered the trigger counts as one of those who started it: they could have sent the request themselves.
   */
  async start(row: TriggerRow, inputs: JsonObject, mark: TriggerMark): Promise<Change<StartedRun> | Refusal> {
    const { runtime, executor } = this.#host;
    const subject = runSubjectOf(row);
    const start =
      (await runtime.storage.refusal(subject.tenant)) ??
      (await this.#creation.create(subject, {
        workflowId: row.workflow_id,
        inputs,
        tags: [`trigger:${row.trigger_id}`],
        metadata: { trigger: { ...mark }, trustBoundary: 'untrusted' },
        initiators: [subject.principal, row.principal],
      }));
    return isRefusal(start) ? start : executor.startRun(start.created);
  }
}
