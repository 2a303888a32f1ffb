/** A bug that is planted in a source file, and the test that must notice it. */
export interface PlantedBug {
  readonly name: string;
  readonly file: string;
  /** Text that is in the file once, and what stands there instead. */
  readonly text: string;
  readonly bug: string;
  readonly layer: 'unit' | 'sim' | 'contract' | 'blackbox';
  /** The test file of that layer, and the part of it where it is large. */
  readonly test: string;
  readonly only?: string;
}

const QUEUE = 'src/store/queue.ts';
const CONTRACT = { layer: 'contract', test: 'test/contract/store.test.ts' } as const;
const SIMULATION = { layer: 'sim', test: 'test/sim/simulation.test.ts' } as const;

/** Each broke a promise of ARCHITECTURE.md when it was planted. */
export const PLANTED: readonly PlantedBug[] = [
  {
    name: 'an effect is claimed without its lease',
    file: 'src/runtime/effects/ledger.ts',
    text: 'store.commit([guardLease(lease, false), claimOf(effect)])',
    bug: 'store.commit([claimOf(effect)])',
    layer: 'unit',
    test: 'src/runtime/effects/ledger.test.ts',
  },
  {
    name: 'SQLite does not sync',
    file: 'src/store/wal-flush.ts',
    text: 'this.#attempt = this.#flushFile(this.#file);',
    bug: 'this.#attempt = Promise.resolve();',
    layer: 'sim',
    test: 'test/sim/disk.test.ts',
  },
  {
    name: 'PostgreSQL claims without SKIP LOCKED',
    file: 'src/store/postgres-render.ts',
    text: "'FOR UPDATE SKIP LOCKED'",
    bug: "'FOR UPDATE'",
    layer: 'contract',
    test: 'test/contract/postgres.test.ts',
  },
  {
    name: 'a claim is handled twice',
    file: 'src/runtime/executor.ts',
    text: '>= item.epoch) return;',
    bug: '> item.epoch) return;',
    layer: 'sim',
    test: 'test/sim/late-claim.test.ts',
  },
  {
    name: 'a claim keeps its epoch',
    file: QUEUE,
    text: 'SET owner = $1, epoch = epoch + 1, due_at = NULL',
    bug: 'SET owner = $1, due_at = NULL',
    ...CONTRACT,
  },
  {
    name: 'a lease is guarded by its owner alone',
    file: QUEUE,
    text: 'epoch = $3`,\n    params: [workId, owner, epoch],\n    expect: 1',
    bug: '$3 > 0`,\n    params: [workId, owner, epoch],\n    expect: 1',
    ...CONTRACT,
  },
  {
    name: 'a wake-up is lost when the lease is released',
    file: QUEUE,
    text: 'AND owner = $3 AND epoch = $4 AND wakes = $5`',
    bug: 'AND owner = $3 AND epoch = $4 AND $5 >= 0`',
    ...CONTRACT,
  },
  {
    name: 'a finished item is deleted though it was woken',
    file: QUEUE,
    text: 'AND owner = $2 AND epoch = $3 AND wakes = $4',
    bug: 'AND owner = $2 AND epoch = $3 AND $4 >= 0',
    ...CONTRACT,
  },
  {
    name: 'items of live hosts are taken for orphans',
    file: QUEUE,
    text: 'WHERE host_id = work.owner AND alive_until >=',
    bug: 'WHERE host_id = work.owner AND alive_until >= 1000000 +',
    ...CONTRACT,
  },
  {
    name: 'suspects are quarantined with the first death',
    file: QUEUE,
    text: 'kind = $2 AND (strikes > $3 OR',
    bug: 'kind = $2 AND (strikes + 3 > $3 OR',
    ...CONTRACT,
  },
  {
    name: 'suspects are tried in the order of their age',
    file: QUEUE,
    text: "isSuspect ? 'strikes, due_at' : 'due_at'",
    bug: "'due_at'",
    ...CONTRACT,
  },
  {
    name: 'an effect with an outcome is claimed again',
    file: 'src/store/effects.ts',
    text: "SET attempts = effects.attempts + 1 WHERE effects.state = 'claimed'",
    bug: 'SET attempts = effects.attempts + 1',
    ...CONTRACT,
  },
  {
    name: 'a unit that fails is committed in part',
    file: 'src/store/sqlite.ts',
    text: '    if (!outcome.committed) connection.run(ROLLBACK_UNIT);\n    return outcome;',
    bug: '    return outcome;',
    ...CONTRACT,
  },
  {
    name: 'an append does not expect the sequence',
    file: 'src/store/log.ts',
    text: "expectation: 'sequence'",
    bug: "expectation: 'sequence-not-handled'",
    ...SIMULATION,
    only: 'shared day of seed 1',
  },
  {
    name: 'a conflict is not decided again',
    file: 'src/runtime/change.ts',
    text: 'if (retryOn.includes(failed)) return OUTDATED;',
    bug: '',
    layer: 'unit',
    test: 'src/runtime/change.test.ts',
  },
  {
    name: 'a conflict of a work item passes for a lost lease',
    file: 'src/runtime/handle-work.ts',
    text: 'return and(changeOf(dueAgainAt ?? null, [end], { refusals: { lease: NOT_RELEASED } }), change);',
    bug: 'return { ...and(changeOf(dueAgainAt ?? null, [end]), change), retryOn: [], refusals: { lease: NOT_RELEASED } };',
    layer: 'unit',
    test: 'src/runtime/handle-work.test.ts',
  },
  {
    name: 'something is announced before it is committed',
    file: 'src/runtime/change.ts',
    text: '  if (writes.length > 0) {',
    bug: '  for (const tell of announce) tell();\n  if (writes.length > 0) {',
    layer: 'unit',
    test: 'src/runtime/change.test.ts',
  },
  {
    name: 'a stale run in memory is not folded again',
    file: 'src/runtime/journal.ts',
    text: '    this.#isStale = true;',
    bug: '',
    layer: 'unit',
    test: 'src/runtime/drive.test.ts',
  },
  {
    name: 'an effect does not wait until its node is recorded',
    file: 'src/runtime/effects/effect-calls.ts',
    text: '    await this.#options.journal.committed();\n    checkTools(this.#options.current());',
    bug: '    checkTools(this.#options.current());',
    layer: 'unit',
    test: 'src/runtime/drive.test.ts',
  },
  {
    name: 'an effect that is claimed does not wait until its node is recorded',
    file: 'src/runtime/effects/effect-calls.ts',
    text: 'return perform({}, journal.committed());',
    bug: 'return perform({});',
    layer: 'unit',
    test: 'src/runtime/drive.test.ts',
  },
  {
    name: 'a claim overtakes the outcome of an earlier attempt',
    file: 'src/runtime/effects/effect-calls.ts',
    text: '    if (!journal.isSettled()) await journal.committed();\n',
    bug: '',
    layer: 'unit',
    test: 'src/runtime/drive.test.ts',
  },
  {
    name: 'an outcome is lost with a refused commit',
    file: 'src/runtime/journal.ts',
    text: '    await this.#storeOutcomes();\n    return this.#conflict',
    bug: '    this.#outcomes.splice(0);\n    return this.#conflict',
    layer: 'unit',
    test: 'src/runtime/drive.test.ts',
  },
  {
    name: 'a reader skips a gap',
    file: 'src/capabilities/running/events/follow.ts',
    text: '    if (!hasNoGap || fresh.length === 0) return [];',
    bug: '    if (fresh.length === 0) return [];',
    ...SIMULATION,
    only: 'shared day of seed',
  },
  {
    name: 'nobody looks after the readers of a shared store',
    file: 'src/capabilities/running/events/follow.ts',
    text: 'runtime.followedRuns.follow(run.runId, (sequence) => this.#onLook(sequence))',
    bug: '() => {}',
    ...SIMULATION,
    only: 'shared day of seed',
  },
  {
    name: 'strays are never looked for',
    file: 'src/runtime/executor.ts',
    text: 'item.epoch}`)) this.#handleClaimed(item);',
    bug: 'item.epoch}`)) void item;',
    ...SIMULATION,
    only: 'shared day of seed',
  },
  {
    name: 'a delivery is repeated from the event after the failed one',
    file: 'src/capabilities/operations/webhooks/work.ts',
    text: "if (outcome.state === 'pending') return { dueAgainAt: cursor.dueAt };",
    bug: "if (outcome.state === 'pending') cursor = { ...cursor, after: event.sequence };",
    ...SIMULATION,
    only: 'shared day of seed',
  },
  {
    name: 'a cached list of subscribers is not loaded at the start',
    file: 'src/capabilities/operations/webhooks/index.ts',
    text: '        await subscribers.tenants.load();\n',
    bug: '',
    ...SIMULATION,
    only: 'owned day of seed',
  },
  {
    name: 'a for-each forgets how many children it has',
    file: 'src/capabilities/running/nodes/for-each.ts',
    text: 'array.slice(children.length, children.length + concurrency - live)',
    bug: 'array.slice(children.length, children.length + concurrency)',
    layer: 'unit',
    test: 'src/capabilities/running/nodes/for-each.test.ts',
  },
  {
    name: 'a sync that failed is repeated without writing the log again',
    file: 'src/store/wal-flush.ts',
    text: '    writeWhole(this.#file, log);',
    bug: '',
    layer: 'unit',
    test: 'src/store/wal-flush.test.ts',
  },
  {
    name: 'a schema is stopped by the clock',
    file: 'src/system/thread-limit.ts',
    text: '    const leftMs = processorMs - ((used ?? 0) - (before ?? 0));',
    bug: '    const leftMs = 0;',
    layer: 'unit',
    test: 'src/runtime/validation/schema-threads.test.ts',
  },
  {
    name: 'retries are not counted',
    file: 'src/engine/run/fold.ts',
    text: '    state.failures++;',
    bug: '',
    layer: 'unit',
    test: 'src/engine/run/outcome.test.ts',
  },
];
