import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import { and, changeOf } from '../../../runtime/change.ts';
import type { WorkHandler, WorkResult } from '../../../runtime/work-kind.ts';
import type { Host } from '../../capability.ts';
import type { Runs } from '../../running/runs/door.ts';
import { subjectOf } from '../../subject-columns.ts';
import { type Occasion, type RunStart, type RunStarter, RunStarters } from './door.ts';
import type { RunRequest, Settlement, StarterFamily } from './family.ts';
import { type StarterColumns, StarterRecords } from './records.ts';
import { nextState } from './rules.ts';
import { RunCreation } from './run-creation.ts';

/** Work items of one family that a host evaluates at the same time: slow observations must not use up its capacity. */
export const OBSERVATIONS_AT_ONCE = 50;

/** The part of the host that the handler uses. */
type StarterHost = Pick<Host, 'runtime' | 'executor' | 'extensions'>;

/**
 * The one handler of the work items of all starters. The outcome of an evaluation, the run that it starts and the next due
 * time are one change, which expects the revision that was evaluated: an occasion gets one run or none, whichever host
 * dies when.
 */
export class StarterWork<Row extends StarterColumns, Request extends RunRequest, Document, Filter> {
  readonly #host: StarterHost;
  readonly #family: StarterFamily<Row, Request, Document, Filter>;
  readonly #records: StarterRecords<Row>;
  readonly #creation: RunCreation;

  constructor(
    host: StarterHost,
    { runs }: { readonly runs: Pick<Runs, 'check'> },
    family: StarterFamily<Row, Request, Document, Filter>,
  ) {
    this.#host = host;
    this.#family = family;
    this.#records = new StarterRecords(family.table);
    this.#creation = new RunCreation(host.runtime, runs);
  }

  /** Evaluates a starter that is due. Work items of starters that are gone, or no longer armed, end here. */
  readonly handle: WorkHandler = async ({ work_id: id, tenant }) => {
    const { store, clock } = this.#host.runtime;
    const [row] = await store.read<Row>(this.#records.find({ tenant }, id));
    if (!row) return {};
    const { state, dueAt } = this.#family.status(row);
    if (state !== 'armed' || dueAt === null) return {};
    return clock.now() < dueAt ? { dueAgainAt: dueAt } : this.#evaluate(row, dueAt);
  };

  async #evaluate(row: Row, dueAt: number): Promise<WorkResult> {
    const owner = this.#ownerOf(row);
    const observeOwner = owner && (() => owner.starter.observe(owner.id, subjectOf(row)));
    const { occasion, settle } = await this.#family.evaluate(row, dueAt, observeOwner);
    const start = occasion && (await this.#start(row, occasion));
    if (!start || isRefusal(start)) return this.#settled(row, settle(start));
    const created = this.#family.recordStart?.(row, start.created) ?? start.created;
    const { change, dueAgainAt } = this.#settled(row, settle(created.held.run.facts));
    const parts = [...(start.change ? [start.change] : []), this.#host.executor.startRun(created)];
    return { change: and(change!, ...parts), dueAgainAt };
  }

  async #start(row: Row, occasion: Occasion): Promise<RunStart | Refusal | undefined> {
    const owner = this.#ownerOf(row);
    const subject = subjectOf(row);
    const starterId = this.#family.idOf(row);
    if (owner) return owner.starter.start({ starterId, ownerId: owner.id, subject, ...occasion });
    const planned = await this.#family.plannedRun(row, occasion);
    if (!planned || isRefusal(planned)) return planned;
    return (await this.#host.runtime.storage.refusal(subject.tenant)) ?? this.#creation.create(subject, planned);
  }

  #settled(row: Row, { columns, next, writes = [] }: Settlement<Row>): WorkResult {
    const dueAgainAt = typeof next === 'number' ? next : undefined;
    const state = nextState('armed', typeof next === 'number' ? 'await' : next)!;
    const status = this.#family.statusColumns({ state, dueAt: dueAgainAt ?? null });
    const settled: Row = { ...row, ...columns, ...status };
    const change = changeOf(undefined, [this.#records.update(settled), ...writes], { retryOn: ['revision'] });
    return { change, dueAgainAt };
  }

  /** Who decides on the runs of a starter; undefined if it has no owner, or one that leaves its runs to the family. */
  #ownerOf({ belongs_to: belongsTo }: Row): { readonly starter: RunStarter; readonly id: string } | undefined {
    const [kind = '', ...id] = belongsTo?.split(':') ?? [];
    const starter = this.#host.extensions(RunStarters).find(({ ownerKind }) => ownerKind === kind);
    return starter && { starter, id: id.join(':') };
  }
}
