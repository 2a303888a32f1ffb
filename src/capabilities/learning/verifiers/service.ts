import { specProblems } from '../../../engine/judging/verifier-spec.ts';
import { NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { defined } from '../../../protocol/format/json.ts';
import type { Verifier, VerifierRequest } from '../../../protocol/learning/verifiers.ts';
import { type Change, changeOf, unchanged } from '../../../runtime/change.ts';
import type { SeamDrivers } from '../../../runtime/effects/seams.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { schemaProblems } from '../../../runtime/validation/definition-problems.ts';
import { ownerOf } from '../../../store/definitions.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Models } from '../../ai/models/door.ts';
import type { Host } from '../../capability.ts';
import type { Costs } from '../../operations/costs/door.ts';
import type { Caller } from '../../request.ts';
import { timestamp } from '../../timestamps.ts';
import type { Audit } from '../../trust/audit/door.ts';
import { recordBy } from '../../trust/audit/door.ts';
import { refuseSecrets } from '../../trust/secrets.ts';
import type {
  JudgedRun,
  Judgement,
  JudgeRequest,
  ListedVerifier,
  Replacement,
  Trial,
  TrialRequest,
  VerifierPlace,
  Verifiers,
} from './door.ts';
import { Judging, type JudgingNeeds } from './judging.ts';
import {
  countVerifiers,
  findVerifier,
  findVerifierVersion,
  insertVersion,
  type ListedVerifierRow,
  latestVersion,
  listVerifiers,
  pointVerifier,
  removeVerifier,
  type VerifierRow,
  withdrawVersion,
} from './records.ts';
import { tryJudging } from './trial.ts';

const VERIFIERS_MAX = 1_000;

/** What verifiers need of other capabilities, and the model that judges without criteria. */
interface VerifierNeeds extends Omit<JudgingNeeds, 'find'> {
  readonly models: Pick<Models, 'seam'>;
  readonly costs: Pick<Costs, 'countOutside'>;
  readonly audit: Pick<Audit, 'record'>;
}

/** Stores verifiers in versions, and judges by them. */
export class VerifierService implements Verifiers {
  readonly #host: Pick<Host, 'runtime'>;
  readonly #audit: VerifierNeeds['audit'];
  readonly #trialNeeds: Pick<VerifierNeeds, 'models' | 'costs'>;
  readonly #judging: Judging;

  constructor(host: Pick<Host, 'runtime' | 'executor'>, { audit, models, costs, ...needs }: VerifierNeeds) {
    this.#host = host;
    this.#audit = audit;
    this.#trialNeeds = { models, costs };
    this.#judging = new Judging(host, { ...needs, find: (from, verifierRef) => this.#find(from, verifierRef) });
  }

  async get({ subject }: Pick<Caller, 'subject'>, verifierRef: string): Promise<Verifier | Refusal> {
    return (await this.#find(subject, verifierRef)) ?? NOT_FOUND;
  }

  async list({ subject }: Caller, after: VerifierPlace, limit: number): Promise<ListedVerifier[]> {
    const rows = await this.#host.runtime.store.read<ListedVerifierRow>(listVerifiers(subject, after, limit));
    return rows.map((row) => ({ verifier: verifierFrom(row), updatedAt: row.updated_at }));
  }

  async ownVersion({ subject }: Pick<Caller, 'subject'>, verifierId: string): Promise<number | undefined> {
    return (await this.#own(subject, verifierId))?.version;
  }

  async put({ subject }: Pick<Caller, 'subject'>, request: VerifierRequest): Promise<Change<Verifier> | Refusal> {
    const refusal =
      (await checkVerifier(request, this.#host.runtime)) ??
      (await this.#refuseMissingWorkflow(subject, request)) ??
      (await this.#refuseSecondJudge(subject, request));
    if (refusal) return refusal;
    const { store, ids, clock } = this.#host.runtime;
    const { id = ids.next('ver-'), ...spec } = request;
    const owner = ownerOf(subject);
    const [latest] = await store.read<{ version: number | null }>(latestVersion(owner, id));
    if (latest?.version == null && (await this.#isFull(owner))) {
      return refuse(
        'conflict',
        `There are ${VERIFIERS_MAX} verifiers already, the most that are possible. Delete one first.`,
        {
          limit: VERIFIERS_MAX,
        },
      );
    }
    return this.#store(subject, {
      owner,
      verifier_id: id,
      version: (latest?.version ?? 0) + 1,
      body: JSON.stringify(spec),
      created_by: subject.principal,
      created_at: clock.now(),
    });
  }

  async withdraw(
    { subject }: Pick<Caller, 'subject'>,
    verifierId: string,
    { version, replaced }: Replacement,
  ): Promise<Change> {
    const inUse = await this.#own(subject, verifierId);
    if (inUse?.version !== version) return unchanged(undefined);
    const moved = withdrawVersion(inUse, replaced, this.#host.runtime.clock.now());
    const details = { withdrawn: version, ...defined({ version: replaced }) };
    return changeOf(undefined, [moved, ...recordBy(this.#audit, subject, 'verifier.put', verifierId, details)], {
      retryOn: ['version'],
    });
  }

  async remove({ subject }: Caller, verifierId: string): Promise<Change> {
    const writes = [
      removeVerifier(ownerOf(subject), verifierId),
      ...recordBy(this.#audit, subject, 'verifier.remove', verifierId),
    ];
    return changeOf(undefined, writes, { refusals: { existence: NOT_FOUND } });
  }

  judge(subject: Subject, request: JudgeRequest): Promise<Judgement> {
    return this.#judging.judge(subject, request);
  }

  tryJudging(by: Visibility, request: TrialRequest): Promise<Trial> {
    return tryJudging(this.#host.runtime, this.#trialNeeds, by, request);
  }

  judgedRun(from: Visibility, runId: string): Promise<JudgedRun | undefined> {
    return this.#judging.judgedRun(from, runId);
  }

  /** The seam through which nodes look up verifiers. */
  readonly seam: SeamDrivers['verifiers'] = async ({ verifierRef }, { tenant, workspace }) => ({
    verifier: (await this.#find({ tenant, workspace }, verifierRef)) ?? null,
  });

  /** Another version with the same number breaks the expectation `version`: the next try takes the number after it. */
  #store(subject: Subject, row: VerifierRow): Change<Verifier> {
    const verifier = verifierFrom(row);
    const { version, kind } = verifier;
    const writes = [
      insertVersion(row),
      pointVerifier(row),
      ...recordBy(this.#audit, subject, 'verifier.put', row.verifier_id, { version, kind }),
    ];
    return changeOf(verifier, writes, { retryOn: ['version'] });
  }

  async #find(from: Visibility, verifierRef: string): Promise<Verifier | undefined> {
    const [, id = verifierRef, version] = /^(.+)@([1-9][0-9]{0,8})$/.exec(verifierRef) ?? [];
    const [row] = await this.#host.runtime.store.read<VerifierRow>(
      version === undefined ? findVerifier(from, id) : findVerifierVersion(from, id, Number(version)),
    );
    return row && verifierFrom(row);
  }

  /** The current version of a verifier, unless it belongs to somebody else. */
  async #own(from: Visibility, verifierId: string): Promise<VerifierRow | undefined> {
    const [row] = await this.#host.runtime.store.read<VerifierRow>(findVerifier(from, verifierId));
    return row?.owner === ownerOf(from) ? row : undefined;
  }

  async #refuseMissingWorkflow(from: Visibility, { workflowId }: VerifierRequest): Promise<Refusal | undefined> {
    if (workflowId === undefined || (await this.#host.runtime.plans.current(from, workflowId))) return undefined;
    return refuse('validation_error', 'There is no such workflow.', { field: 'workflowId' });
  }

  /** The verifier that has to agree must be another one. */
  async #refuseSecondJudge(from: Visibility, { id, secondJudge }: VerifierRequest): Promise<Refusal | undefined> {
    const { verifierRef } = secondJudge ?? {};
    if (verifierRef === undefined) return undefined;
    const second = await this.#find(from, verifierRef);
    const message = second ? 'A verifier cannot be its own second judge.' : 'There is no such verifier.';
    if (second && second.id !== id) return undefined;
    return refuse('validation_error', message, { field: 'secondJudge.verifierRef' });
  }

  async #isFull(owner: string): Promise<boolean> {
    const [row] = await this.#host.runtime.store.read<{ count: number }>(countVerifiers(owner));
    return row!.count >= VERIFIERS_MAX;
  }
}

/** Refuses an inconsistent verifier, and secrets: verifiers are stored for good and shown to many. */
async function checkVerifier(
  request: VerifierRequest,
  { schemas }: Pick<Runtime, 'schemas'>,
): Promise<Refusal | undefined> {
  const { schema } = request;
  const found = schema === undefined ? [] : [{ path: '.schema', schema }];
  const [problem = (await schemaProblems(found, schemas))[0]] = specProblems(request);
  if (problem) {
    const field = problem.path.slice(1);
    return refuse('validation_error', `${field}: ${problem.message}`, { field });
  }
  return refuseSecrets(request);
}

function verifierFrom(row: VerifierRow): Verifier {
  return {
    id: row.verifier_id,
    version: row.version,
    ...(JSON.parse(row.body) as Omit<VerifierRequest, 'id'>),
    createdBy: row.created_by,
    createdAt: timestamp(row.created_at),
  };
}
