import type { CommitmentState } from '../../../protocol/starting/commitments.ts';
import type { Migration } from '../../../store/store.ts';
import { STARTER_COLUMNS, type StarterColumns, type StarterTable } from '../starter/records.ts';

/** The table of commitments, as it is created. */
export const COMMITMENT_TABLES: readonly Migration[] = [
  {
    id: 'commitments/0001',
    statements: [
      // What is to be done, and on which condition. `revision` moves with every change, so that none is kept twice.
      `CREATE TABLE commitments (
        commitment_id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        tenant_name TEXT NOT NULL,
        workspace TEXT,
        principal TEXT NOT NULL,
        issuer TEXT NOT NULL,
        lane TEXT NOT NULL,
        belongs_to TEXT,
        spec TEXT NOT NULL,
        inputs TEXT,
        shown_inputs TEXT,
        revision BIGINT NOT NULL,
        state TEXT NOT NULL,
        next_check_at BIGINT,
        met_at BIGINT,
        holds BIGINT NOT NULL,
        last_error TEXT,
        fired_at BIGINT,
        run_id TEXT,
        created_at BIGINT NOT NULL
      ) $clustered`,
      'CREATE INDEX commitments_by_tenant ON commitments (tenant, commitment_id)',
    ],
  },
];

/** A commitment as it is stored. */
export interface CommitmentRow extends StarterColumns {
  readonly commitment_id: string;
  /** The request, without its inputs. */
  readonly spec: string;
  readonly state: CommitmentState;
  readonly next_check_at: number | null;
  /** When the condition was first met, as long as its run could not be started. */
  readonly met_at: number | null;
  /** 1 if the predicate was true the last time: it counts again once it was false. */
  readonly holds: number;
  readonly last_error: string | null;
  readonly fired_at: number | null;
  readonly run_id: string | null;
}

/** The table of commitments, for the statements that all starters share. */
export const COMMITMENTS: StarterTable<CommitmentRow> = {
  name: 'commitments',
  id: 'commitment_id',
  columns: [
    'commitment_id',
    ...STARTER_COLUMNS,
    'spec',
    'state',
    'next_check_at',
    'met_at',
    'holds',
    'last_error',
    'fired_at',
    'run_id',
  ],
};
