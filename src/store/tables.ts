import type { Migration } from './store.ts';

/**
 * Migrations of the tables that the store itself uses: runs, events, work items and their companions. Capabilities
 * bring their own migrations.
 */
export const CORE_TABLES: readonly Migration[] = [
  {
    id: 'core/0001',
    statements: [
      // A run: immutable facts, plus columns that repeat what its log says so that lists need not fold events.
      `CREATE TABLE runs (
        run_id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        workspace TEXT,
        principal TEXT NOT NULL,
        issuer TEXT NOT NULL,
        lane TEXT NOT NULL,
        workflow_owner TEXT NOT NULL,
        workflow_id TEXT NOT NULL,
        workflow_version BIGINT NOT NULL,
        parent_run_id TEXT,
        parent_node_id TEXT,
        facts TEXT NOT NULL,
        engine_version BIGINT NOT NULL,
        event_log_schema_version BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        status TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        ended_at BIGINT,
        error_code TEXT
      ) $clustered`,
      'CREATE INDEX runs_by_tenant ON runs (tenant, run_id)',
      'CREATE INDEX runs_by_workflow ON runs (tenant, workflow_id, run_id)',
      'CREATE INDEX runs_live ON runs (tenant, run_id) WHERE ended_at IS NULL',
      'CREATE INDEX runs_by_parent ON runs (parent_run_id) WHERE parent_run_id IS NOT NULL',
      `CREATE TABLE run_tags (
        tenant TEXT NOT NULL,
        tag TEXT NOT NULL,
        run_id TEXT NOT NULL,
        PRIMARY KEY (tenant, tag, run_id)
      ) $clustered`,
      // Live runs by the concurrency scope that their callers named.
      `CREATE TABLE live_scopes (
        scope_key TEXT NOT NULL,
        run_id TEXT NOT NULL,
        PRIMARY KEY (scope_key, run_id)
      ) $clustered`,
      // Number of live runs per scope: the row on which requests for an exclusive scope compete.
      `CREATE TABLE scope_holders (
        scope_key TEXT PRIMARY KEY,
        holders BIGINT NOT NULL
      ) $clustered`,
      // The event log. \`body\` is the event as every reader gets it; \`hidden\` holds unmasked values for the fold
      // only.
      `CREATE TABLE events (
        run_id TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        type TEXT NOT NULL,
        body TEXT NOT NULL,
        hidden TEXT,
        PRIMARY KEY (run_id, sequence)
      ) $clustered`,
      // The work queue. \`epoch\` is the fencing token: each claim increments it. \`wakes\` counts wake-ups.
      `CREATE TABLE work (
        work_id TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        tenant TEXT NOT NULL,
        payload TEXT NOT NULL,
        due_at BIGINT,
        owner TEXT,
        epoch BIGINT NOT NULL,
        wakes BIGINT NOT NULL,
        crashes BIGINT NOT NULL
      ) $clustered`,
      'CREATE INDEX work_due ON work (due_at) WHERE owner IS NULL AND due_at IS NOT NULL',
      'CREATE INDEX work_owned ON work (owner) WHERE owner IS NOT NULL',
      // Host heartbeats. A lease is valid while its owner's row here has not expired.
      `CREATE TABLE hosts (
        host_id TEXT PRIMARY KEY,
        alive_until BIGINT NOT NULL
      ) $clustered`,
      // Workflow definitions. A version is immutable, because a run keeps the version it started with.
      `CREATE TABLE definitions (
        owner TEXT NOT NULL,
        workflow_id TEXT NOT NULL,
        version BIGINT NOT NULL,
        digest TEXT NOT NULL,
        body TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        PRIMARY KEY (owner, workflow_id, version)
      ) $clustered`,
      // The current version of each workflow, used by new runs; a removed workflow has no row here.
      `CREATE TABLE workflows (
        owner TEXT NOT NULL,
        workflow_id TEXT NOT NULL,
        version BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        PRIMARY KEY (owner, workflow_id)
      ) $clustered`,
      // Idempotency records: the response that a retry with the same key gets again.
      `CREATE TABLE idempotency (
        record_key TEXT PRIMARY KEY,
        digest TEXT NOT NULL,
        status BIGINT NOT NULL,
        body TEXT NOT NULL,
        headers TEXT,
        expires_at BIGINT NOT NULL
      ) $clustered`,
      'CREATE INDEX idempotency_expiry ON idempotency (expires_at)',
      // The effect ledger: one row per external side effect, with its outcome once known.
      `CREATE TABLE effects (
        effect_id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        run_id TEXT NOT NULL,
        node_id TEXT NOT NULL,
        ordinal BIGINT NOT NULL,
        provider_key TEXT NOT NULL,
        state TEXT NOT NULL,
        attempts BIGINT NOT NULL,
        outcome TEXT,
        expires_at BIGINT NOT NULL
      ) $clustered`,
      'CREATE INDEX effects_expiry ON effects (expires_at)',
    ],
  },
  {
    id: 'core/0002',
    statements: [
      // For retention: find expired runs, and everything that belongs to one run, without a full scan.
      'CREATE INDEX runs_ended ON runs (tenant, ended_at) WHERE ended_at IS NOT NULL',
      'CREATE INDEX run_tags_by_run ON run_tags (run_id)',
      'CREATE INDEX effects_by_run ON effects (run_id)',
    ],
  },
  {
    id: 'core/0003',
    statements: [
      // Number of descendants of each root run (a run without a parent), to enforce the limit per tree.
      `CREATE TABLE run_trees (
        run_id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        below BIGINT NOT NULL
      ) $clustered`,
    ],
  },
  {
    id: 'core/0004',
    statements: [
      // The source of each fork, to find the forks of a run.
      `CREATE TABLE run_forks (
        run_id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        source_run_id TEXT NOT NULL
      ) $clustered`,
      'CREATE INDEX run_forks_by_source ON run_forks (tenant, source_run_id, run_id)',
    ],
  },
  {
    id: 'core/0005',
    statements: [
      // What the caller of the stored response was allowed to do: nobody gets it with fewer rights.
      'ALTER TABLE idempotency ADD COLUMN rights TEXT',
    ],
  },
  {
    id: 'core/0006',
    statements: [
      // Host deaths and stalls that an item is suspected of, and when it was quarantined for them.
      'ALTER TABLE work ADD COLUMN strikes BIGINT NOT NULL DEFAULT 0',
      'ALTER TABLE work ADD COLUMN quarantined_at BIGINT',
      'CREATE INDEX work_quarantined ON work (tenant, quarantined_at) WHERE quarantined_at IS NOT NULL',
      // To share places out by tenant without a look at everything that one of them has in the queue.
      'CREATE INDEX work_due_by_tenant ON work (tenant, due_at) WHERE owner IS NULL AND due_at IS NOT NULL',
    ],
  },
  {
    id: 'core/0007',
    statements: [
      // Bytes that each tenant has stored in its runs, counted by each host in a row of its own.
      `CREATE TABLE tenant_storage (
        tenant TEXT NOT NULL,
        shard TEXT NOT NULL,
        bytes BIGINT NOT NULL,
        PRIMARY KEY (tenant, shard)
      ) $clustered`,
      `INSERT INTO tenant_storage (tenant, shard, bytes)
       SELECT tenant, '*', SUM(octet_length(facts) + COALESCE(
         (SELECT SUM(octet_length(body) + COALESCE(octet_length(hidden), 0)) FROM events
          WHERE events.run_id = runs.run_id), 0))
       FROM runs GROUP BY tenant`,
    ],
  },
  {
    id: 'core/0009',
    statements: [
      // The digest of the run's log (`log-digest.ts`). A run from before gets one with its next event.
      'ALTER TABLE runs ADD COLUMN log_seal TEXT',
    ],
  },
  {
    id: 'core/0010',
    statements: [
      // Suspects of a host's death are few among many that wait: to find the next without a look at the others.
      'CREATE INDEX work_suspects ON work (due_at) WHERE owner IS NULL AND due_at IS NOT NULL AND strikes > 0',
    ],
  },
  {
    id: 'core/0012',
    statements: [
      // Which version a host is of, for whoever upgrades one host after the other.
      'ALTER TABLE hosts ADD COLUMN version TEXT',
    ],
  },
  {
    id: 'core/0013',
    statements: [
      // Runs that failed or were cancelled are few among many that completed, and are looked for by their status.
      `CREATE INDEX runs_unsuccessful ON runs (tenant, status, run_id)
       WHERE ended_at IS NOT NULL AND status <> 'completed'`,
      `CREATE INDEX runs_unsuccessful_of_workflow ON runs (tenant, workflow_id, status, run_id)
       WHERE ended_at IS NOT NULL AND status <> 'completed'`,
    ],
  },
  {
    id: 'core/0014',
    statements: [
      // What lists say about forks. It is in the facts of a run, too, and those may be large.
      'ALTER TABLE run_forks ADD COLUMN mode TEXT',
      'ALTER TABLE run_forks ADD COLUMN is_preview BIGINT',
    ],
  },
];
