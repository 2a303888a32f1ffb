import type { RunRef, Visibility } from '../../../store/log.ts';
import { addOrWakeEach } from '../../../store/queue.ts';
import { type Param, type Statement, sql, type Write } from '../../../store/sql.ts';
import type { EvenPeriod } from '../../periods.ts';
import type { GoalRunRow } from './records.ts';

/** A person's opinion on verdicts that say satisfied (`ofSatisfied`), or on those that do not. */
export interface VerdictOpinion {
  readonly ofSatisfied: boolean;
  readonly agrees: boolean;
  readonly principal: string;
  readonly at: number;
}

/**
 * Stores what a person thinks of the verdict on a run, if the verdict is one that the opinion is about. The judge is
 * right if it said what the person expects, also where another person had decided otherwise.
 */
export function noteOpinion({ tenant, runId }: RunRef, { ofSatisfied, agrees, principal, at }: VerdictOpinion): Write {
  const dispute = agrees ? '' : ', disputed_by = $5, disputed_at = $6';
  return {
    sql: `UPDATE goal_runs SET expected = $4, agreed = CASE WHEN COALESCE(said, satisfied) = $4 THEN 1 ELSE 0 END,
            opinion_by = $5, opinion_at = $6${dispute}
          WHERE run_id = $1 AND tenant = $2 AND satisfied = $3`,
    params: [runId, tenant, Number(ofSatisfied), Number(agrees === ofSatisfied), principal, at],
  };
}

/** Takes a disputed verdict out of the inbox. Who disputed it stays stored. */
export function closeDispute({ tenant, runId }: RunRef): Write {
  return {
    sql: 'UPDATE goal_runs SET disputed_at = NULL WHERE run_id = $1 AND tenant = $2',
    params: [runId, tenant],
  };
}

/** Has the verdict on a run wait for a person. */
export function awaitPerson({ tenant, runId }: RunRef): Write {
  return {
    sql: 'UPDATE goal_runs SET awaits_person = 1 WHERE run_id = $1 AND tenant = $2',
    params: [runId, tenant],
  };
}

/** Forgets that the verdict on a run waits for a person, and what they said. */
export function stopAwaitingPerson({ tenant, runId }: RunRef): Write {
  return {
    sql: `UPDATE goal_runs SET awaits_person = NULL, expected = NULL, opinion_by = NULL, opinion_at = NULL
          WHERE run_id = $1 AND tenant = $2 AND judged_at IS NULL`,
    params: [runId, tenant],
  };
}

/** What a person decides about a run. */
interface Decision {
  readonly satisfied: boolean;
  readonly principal: string;
  readonly at: number;
}

/** Stores what a person decides about a run whose verdict waits for that. */
export function noteDecision({ tenant, runId }: RunRef, { satisfied, principal, at }: Decision): Write {
  return {
    sql: `UPDATE goal_runs SET expected = $3, opinion_by = $4, opinion_at = $5
          WHERE run_id = $1 AND tenant = $2 AND awaits_person = 1 AND judged_at IS NULL`,
    params: [runId, tenant, Number(satisfied), principal, at],
  };
}

/** Makes the work item of the goal due whose verdict waits for a person. */
export function callAwaiting({ tenant, runId }: RunRef, kind: string): Write {
  const from = 'goal_runs WHERE run_id = $1 AND tenant = $2 AND awaits_person = 1';
  return addOrWakeEach({ workId: 'goal_id', from, params: [runId, tenant] }, { kind, tenant });
}

/** How often people agreed with a judge. */
export interface CalibrationRow {
  readonly judge: string;
  readonly verdicts: number;
  readonly agreed: number;
  readonly disputed: number;
}

/** When a verdict was reviewed. What was noted before there was a column for it counts from the dispute or the verdict on. */
const REVIEWED_AT = 'COALESCE(opinion_at, disputed_at, judged_at)';

const COUNTS = `CAST(COALESCE(SUM(agreed), 0) AS BIGINT) AS agreed,
  CAST(COALESCE(SUM(1 - agreed), 0) AS BIGINT) AS disputed`;

/** Verdicts by judge, with how many of them people agreed with or disputed: of all judges, or of one in all its versions. */
export function calibrate(from: Visibility, verifierId?: string): Statement {
  const { params, where } = verdictsFrom(from, verifierId);
  return {
    sql: `SELECT judge, COUNT(*) AS verdicts, ${COUNTS} FROM goal_runs WHERE ${where} GROUP BY judge ORDER BY judge`,
    params,
  };
}

/** Verdicts that are visible from a workspace: of all judges, or of one, whose versions are named `id@version`. */
function verdictsFrom({ tenant, workspace }: Visibility, verifierId?: string): { params: Param[]; where: string } {
  const params: Param[] = [tenant];
  const where = ['tenant = $1', 'judge IS NOT NULL'];
  if (workspace !== undefined) where.push(`workspace = $${params.push(workspace)}`);
  if (verifierId !== undefined) {
    const versions = `${verifierId}@`;
    const prefix = `$${params.push(versions)}`;
    where.push(`(judge = $${params.push(verifierId)} OR SUBSTR(judge, 1, ${versions.length}) = ${prefix})`);
  }
  return { params, where: where.join(' AND ') };
}

/** A period, by the number of its first millisecond, and the opinions that people gave in it. */
export interface AgreementRow {
  readonly start: number;
  readonly agreed: number;
  readonly disputed: number;
}

/** Opinions on the verdicts of a judge by period, the latest first. Periods are `widthMs` long from `origin` on. */
export function agreementByPeriod(
  from: Visibility,
  verifierId: string,
  { widthMs, origin }: EvenPeriod,
  limit: number,
): Statement {
  const { params, where } = verdictsFrom(from, verifierId);
  const start = `(${REVIEWED_AT} - ${origin}) / ${widthMs} * ${widthMs} + ${origin}`;
  return {
    sql: `SELECT ${start} AS start, ${COUNTS} FROM goal_runs WHERE ${where} AND agreed IS NOT NULL
          GROUP BY ${start} ORDER BY start DESC LIMIT $${params.push(limit)}`,
    params,
  };
}

/** A position among reviewed verdicts, which are sorted by the time of the review, latest first. */
export interface ReviewPlace {
  readonly at: number;
  readonly runId: string;
}

/** Verdicts of a judge that people reviewed, the latest review first. */
export function listReviewed(
  from: Visibility,
  verifierId: string,
  before: ReviewPlace | undefined,
  limit: number,
): Statement {
  const { params, where } = verdictsFrom(from, verifierId);
  const place = before
    ? `AND (${REVIEWED_AT}, run_id) < ($${params.push(before.at)}, $${params.push(before.runId)})`
    : '';
  return {
    sql: `SELECT * FROM goal_runs WHERE ${where} AND agreed IS NOT NULL ${place}
          ORDER BY ${REVIEWED_AT} DESC, run_id DESC LIMIT $${params.push(limit)}`,
    params,
  };
}

/** The latest verdicts of a judge, in all its versions. */
export function listVerdictsOf(from: Visibility, verifierId: string, limit: number): Statement {
  const { params, where } = verdictsFrom(from, verifierId);
  return {
    sql: `SELECT * FROM goal_runs WHERE ${where} ORDER BY judged_at DESC, run_id DESC LIMIT $${params.push(limit)}`,
    params,
  };
}

/** The latest verdicts of all judges. */
export function listLatestVerdicts({ tenant, workspace }: Visibility, limit: number): Statement {
  if (workspace === undefined) {
    return sql(
      'SELECT * FROM goal_runs WHERE tenant = $1 AND judged_at IS NOT NULL ORDER BY judged_at DESC, run_id DESC LIMIT $2',
      tenant,
      limit,
    );
  }
  return sql(
    `SELECT * FROM goal_runs WHERE tenant = $1 AND workspace = $3 AND judged_at IS NOT NULL
     ORDER BY judged_at DESC, run_id DESC LIMIT $2`,
    tenant,
    limit,
    workspace,
  );
}

/** What people think of a verdict. */
interface Opinion {
  /** What the judge said, whatever a person decided. */
  readonly said: boolean;
  /** What people say that it should have said; undefined if nobody reviewed it. */
  readonly expected: boolean | undefined;
  readonly reviewedAt: number | undefined;
  readonly reviewedBy: string | undefined;
}

/** The opinion that is stored with a verdict. */
export function opinionIn(row: GoalRunRow): Opinion {
  const said = (row.said ?? row.satisfied) === 1;
  if (row.agreed === null) return { said, expected: undefined, reviewedAt: undefined, reviewedBy: undefined };
  return {
    said,
    expected: row.expected === null ? said === (row.agreed === 1) : row.expected === 1,
    reviewedAt: row.opinion_at ?? row.disputed_at ?? row.judged_at!,
    reviewedBy: row.opinion_by ?? row.disputed_by ?? undefined,
  };
}
