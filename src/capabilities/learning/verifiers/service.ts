import { specProblems } from '../../../engine/judging/verifier-spec.ts';
import { NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { Verifier, VerifierRequest } from '../../../protocol/learning/verifiers.ts';
import { commitUnless } from '../../../runtime/command.ts';
import type { SeamDrivers } from '../../../runtime/effects/seams.ts';
import { ownerOf } from '../../../store/definitions.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Unit } from '../../../store/sql.ts';
import type { Also, LegacyHost as Host } from '../../legacy.ts';
import type { Feedback } from '../../people/feedback/door.ts';
import type { Caller } from '../../request.ts';
import type { Runs } from '../../running/runs/door.ts';
import { type AuditService, recordBy } from '../../trust/audit/service.ts';
import { refuseSecrets } from '../../trust/secrets.ts';
import { Judging } from './judging.ts';
import {
  countVerifiers,
  findVerifier,
  findVerifierVersion,
  insertVersion,
  latestVersion,
  listVerifiers,
  pointVerifier,
  removeVerifier,
  type VerifierPlace,
  type VerifierRow,
} from './records.ts';

export type { JudgedRun, Judgement, JudgeRequest, Pending, Undecided, Verdict } from './judging.ts';

const VERIFIERS_MAX = 1_000;
const TRIES_MAX = 5;

export interface VerifierNeeds {
  readonly audit: Pick<AuditService, 'record'>;
  readonly runs: Pick<Runs, 'check'>;
  readonly feedback?: Pick<Feedback, 'pages'> | undefined;
}

export type VerifierService = ReturnType<typeof verifierService>;

export function verifierService(host: Host, { audit, runs, feedback }: VerifierNeeds) {
  const { store, clock, ids, plans } = host.runtime;
  const judging = new Judging(host, find, { runs, feedback });

  return {
    judge: judging.judge,
    judgedRun: judging.judgedRun,

    async get({ subject }: Caller, verifierId: string): Promise<Verifier | Refusal> {
      return (await find(subject, verifierId)) ?? NOT_FOUND;
    },

    async list({ subject }: Caller, after: VerifierPlace, limit: number): Promise<Verifier[]> {
      return (await store.read<VerifierRow>(listVerifiers(subject, after, limit))).map(fromRow);
    },

    /** Takes a verifier in; one that is there already gets a new version. */
    async put(caller: Caller, request: VerifierRequest, also: Also<Verifier>): Promise<Verifier | Refusal> {
      const { id = ids.next('ver-'), ...spec } = request;
      const refusal = refusalOf(request) ?? (await refuseMissing(caller.subject, request));
      if (refusal) return refusal;
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        const put = await tryPut(caller, id, spec, also);
        if (put) return put;
      }
      return refuse('conflict', 'The verifier is being changed by others. Try again.');
    },

    /** Verdicts that name it stay, and so does what it was; nothing more is judged by it. */
    async remove({ subject }: Caller, verifierId: string, also: () => Unit): Promise<Refusal | undefined> {
      const isDone = await commitUnless('existence', store, [
        removeVerifier(ownerOf(subject), verifierId),
        ...recordBy(audit, subject, 'verifier.remove', verifierId),
        ...also(),
      ]);
      return isDone ? undefined : NOT_FOUND;
    },

    /** How nodes come by verifiers. */
    seam: (async ({ verifierRef }, { tenant, workspace }) => ({
      verifier: (await find({ tenant, workspace }, verifierRef)) ?? null,
    })) satisfies SeamDrivers['verifiers'],
  };

  /** By `id`, the version in use; by `id@version`, that one. */
  async function find(from: Visibility, verifierRef: string): Promise<Verifier | undefined> {
    const [, id = verifierRef, version] = /^(.+)@([1-9][0-9]{0,8})$/.exec(verifierRef) ?? [];
    const [row] = await store.read<VerifierRow>(
      version === undefined ? findVerifier(from, id) : findVerifierVersion(from, id, Number(version)),
    );
    return row && fromRow(row);
  }

  async function refuseMissing(from: Visibility, { workflowId }: VerifierRequest): Promise<Refusal | undefined> {
    if (workflowId === undefined || (await plans.current(from, workflowId))) return undefined;
    return refuse('validation_error', 'There is no such workflow.', { field: 'workflowId' });
  }

  /** Undefined when another version took the number in between. */
  async function tryPut(
    { subject }: Caller,
    verifierId: string,
    spec: Omit<VerifierRequest, 'id'>,
    also: Also<Verifier>,
  ): Promise<Verifier | Refusal | undefined> {
    const owner = ownerOf(subject);
    const [known] = await store.read<{ version: number | null }>(latestVersion(owner, verifierId));
    if (known?.version == null && (await isFull(owner))) {
      return refuse('conflict', `There may be ${VERIFIERS_MAX} verifiers.`, { limit: VERIFIERS_MAX });
    }
    const row: VerifierRow = {
      owner,
      verifier_id: verifierId,
      version: (known?.version ?? 0) + 1,
      body: JSON.stringify(spec),
      created_by: subject.principal,
      created_at: clock.now(),
    };
    const verifier = fromRow(row);
    const { version, kind } = verifier;
    const isDone = await commitUnless('version', store, [
      insertVersion(row),
      pointVerifier(row),
      ...recordBy(audit, subject, 'verifier.put', verifierId, { version, kind }),
      ...also(verifier),
    ]);
    return isDone ? verifier : undefined;
  }

  async function isFull(owner: string): Promise<boolean> {
    const [row] = await store.read<{ count: number }>(countVerifiers(owner));
    return row!.count >= VERIFIERS_MAX;
  }
}

/** Verifiers are kept for good and shown to many, so there is no place for a secret in them. */
function refusalOf(request: VerifierRequest): Refusal | undefined {
  const [problem] = specProblems(request);
  if (problem) {
    const field = problem.path.slice(1);
    return refuse('validation_error', `${field}: ${problem.message}`, { field });
  }
  return refuseSecrets(request);
}

function fromRow(row: VerifierRow): Verifier {
  return {
    id: row.verifier_id,
    version: row.version,
    ...(JSON.parse(row.body) as Omit<VerifierRequest, 'id'>),
    createdBy: row.created_by,
    createdAt: new Date(row.created_at).toISOString(),
  };
}
