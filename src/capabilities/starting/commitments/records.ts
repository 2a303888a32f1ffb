import type { CommitmentState } from '../../../protocol/starting/commitments.ts';
import type { Visibility } from '../../../store/log.ts';
import {
  deleteOwned,
  findOwned,
  insertOwned,
  listOwned,
  type OwnedTable,
  setOwned,
  updateOwned,
} from '../../../store/owned-rows.ts';
import type { Statement, Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';
import {
  INPUT_COLUMNS,
  type InputColumns,
  type OwnerColumn,
  SUBJECT_COLUMNS,
  type SubjectColumns,
} from '../starter/self-starting.ts';

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

export interface CommitmentRow extends SubjectColumns, InputColumns, OwnerColumn {
  readonly commitment_id: string;
  readonly spec: string;
  readonly revision: number;
  readonly state: CommitmentState;
  readonly next_check_at: number | null;
  /** When its condition was first found to be met, as long as it could not be kept. */
  readonly met_at: number | null;
  /** 1 where the predicate was true the last time: it is kept again once it was not. */
  readonly holds: number;
  readonly last_error: string | null;
  readonly fired_at: number | null;
  readonly run_id: string | null;
  readonly created_at: number;
}

const COMMITMENTS: OwnedTable = { name: 'commitments', id: 'commitment_id' };
const FIXED = [
  'commitment_id',
  ...SUBJECT_COLUMNS,
  ...INPUT_COLUMNS,
  'belongs_to',
  'spec',
  'revision',
  'created_at',
] as const;
const MOVED = ['state', 'next_check_at', 'met_at', 'holds', 'last_error', 'fired_at', 'run_id'] as const;

/** Refused when the tenant has too many already. */
export function insertCommitment(row: CommitmentRow, most: number): Write {
  return insertOwned(COMMITMENTS, [...FIXED, ...MOVED], row, most);
}

/** Refused when somebody else was there first. */
export function moveCommitment(row: CommitmentRow): Write {
  return updateOwned(COMMITMENTS, MOVED, row);
}

/** Refused when it has changed since it was read. */
export function lendCommitment(row: CommitmentRow): Write {
  return updateOwned(COMMITMENTS, ['belongs_to', ...MOVED], row);
}

export function takeBackCommitment(tenant: string, commitmentId: string): Write {
  return setOwned(COMMITMENTS, tenant, commitmentId, { belongs_to: null, state: 'off', next_check_at: null });
}

export function deleteCommitment(visibility: Visibility, commitmentId: string): Write {
  return deleteOwned(COMMITMENTS, visibility, commitmentId);
}

export function findCommitment(visibility: Visibility, commitmentId: string): Statement {
  return findOwned(COMMITMENTS, visibility, commitmentId);
}

export interface CommitmentFilter {
  readonly state?: string | undefined;
  /** Where the page before ended. */
  readonly before?: string | undefined;
}

export function listCommitments(visibility: Visibility, { state, before }: CommitmentFilter, limit: number): Statement {
  return listOwned(COMMITMENTS, visibility, { state, before }, limit);
}
