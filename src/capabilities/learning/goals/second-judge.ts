import { isRefusal } from '../../../protocol/errors.ts';
import { defined } from '../../../protocol/format/json.ts';
import type { Verifier } from '../../../protocol/learning/verifiers.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Store } from '../../../store/store.ts';
import type { Verdict, Verifiers } from '../verifiers/door.ts';
import { listReviewed } from './opinion-records.ts';
import type { GoalRunRow } from './records.ts';

/** Why a verdict is not enough, and the verifier that has to agree; a person if there is none. */
export interface Doubt {
  readonly why: string;
  readonly by?: string;
}

/** How often people agreed with the latest verdicts that they reviewed. */
interface RecentAgreement {
  readonly reviewed: number;
  readonly agreed: number;
  /** Whether another judge has to agree with the next verdict. */
  readonly isDoubted: boolean;
}

type SecondJudge = NonNullable<Verifier['secondJudge']>;

/** Reviewed verdicts that are looked at where the verifier does not say how many. */
const LAST = 20;
/** Reviewed verdicts from which a share says something. */
const REVIEWED_MIN = 3;

/** Says when the verdict of a judge needs another one. */
export class SecondJudges {
  readonly #store: Pick<Store, 'read'>;
  readonly #verifiers: Pick<Verifiers, 'get'>;

  constructor(store: Pick<Store, 'read'>, verifiers: Pick<Verifiers, 'get'>) {
    this.#store = store;
    this.#verifiers = verifiers;
  }

  /** Why a verdict is not enough; undefined if it is. */
  async doubtOf(subject: Subject, { judge, satisfied }: Verdict): Promise<Doubt | undefined> {
    const verifier = await this.#verifiers.get({ subject }, judge);
    if (isRefusal(verifier) || !verifier.secondJudge) return undefined;
    const { reviewed, agreed, isDoubted } = await this.recent(subject, verifier);
    if (!isDoubted) return undefined;
    const why = `${judge} says ${inWords(satisfied)}; people agreed with ${agreed} of its last ${reviewed} reviewed verdicts.`;
    return { why, ...defined({ by: verifier.secondJudge.verifierRef }) };
  }

  /** A new version has to earn its trust: the reviews of all versions of a verifier count. */
  async recent(from: Visibility, { id, secondJudge }: Pick<Verifier, 'id' | 'secondJudge'>): Promise<RecentAgreement> {
    const { tenant, workspace } = from;
    const last = secondJudge?.last ?? LAST;
    const rows = await this.#store.read<GoalRunRow>(listReviewed({ tenant, workspace }, id, undefined, last));
    const agreed = rows.filter((row) => row.agreed === 1).length;
    return { reviewed: rows.length, agreed, isDoubted: isBelow(secondJudge, rows.length, agreed) };
  }
}

function isBelow(secondJudge: SecondJudge | undefined, reviewed: number, agreed: number): boolean {
  return secondJudge !== undefined && reviewed >= REVIEWED_MIN && agreed / reviewed < secondJudge.agreementBelow;
}

/** A verdict in words. */
export function inWords(satisfied: boolean): string {
  return satisfied ? 'satisfied' : 'not satisfied';
}
