import {
  type Binding,
  type Composition,
  composePrompt,
  extract,
  secretMarker,
} from '../../../engine/models/prompt-text.ts';
import type {
  ContentTrust,
  PromptSource,
  PromptTarget,
  PromptTemplate,
  PromptVariable,
} from '../../../protocol/ai/prompts.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { canonicalJson, type JsonObject, own } from '../../../protocol/format/json.ts';
import type { AuditAction } from '../../../protocol/trust/audit-actions.ts';
import { commitUnless } from '../../../runtime/command.ts';
import type { SeamDrivers } from '../../../runtime/effects/seams.ts';
import { HOST_OWNER, ownerOf } from '../../../store/definitions.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Statement, Unit } from '../../../store/sql.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { redactText, redactValue } from '../../../system/redaction.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { Caller } from '../../request.ts';
import type { AuditService } from '../../trust/audit/service.ts';
import {
  findLatest,
  findRemoved,
  findRevision,
  findVersion,
  insertVersion,
  type KnownVersion,
  listLatest,
  listVersions,
  moveLatest,
  type PromptFilter,
  type PromptKey,
  removeVersions,
  restoreVersion,
  type VersionRow,
} from './records.ts';
import { checkSuccession, checkTemplate, shapeMisfits } from './rules.ts';

/** A version of a template, as a library has it. */
export interface RegisteredPrompt {
  readonly template: PromptTemplate;
  readonly source: PromptSource;
  readonly digest: string;
}

/** A template, and what to fill it with. */
export interface Preview {
  readonly target: PromptTarget;
  readonly variables: JsonObject;
  readonly contentTrust: ContentTrust;
}

/** Who changes the library, whether by a request of theirs or by something that was decided for them. */
export type Author = Pick<Caller, 'subject'>;

export type PromptService = ReturnType<typeof promptService>;

type Also<T> = (outcome: T) => Unit;
type PromptVersion = Required<Pick<PromptTarget, 'templateId' | 'version'>>;

/** The library of this host, for references that name one. */
export const LIBRARY_ID = 'capstan';

const TRIES_MAX = 5;
/** Later than everything that was removed: for those who see only what is there now. */
const NOW = Number.MAX_SAFE_INTEGER;

/** A version that is not there yet: it is once its writes are committed, unless the template was changed meanwhile. */
export interface PreparedPrompt {
  readonly registered: RegisteredPrompt;
  /** Their promise is called `revision`. */
  readonly writes: Unit;
}

/** What is known of a template before it is changed. */
interface Known {
  readonly key: PromptKey;
  readonly revision: number;
  readonly versions: readonly KnownVersion[];
}

export function promptService(
  { runtime, settings }: Host,
  { audit }: { readonly audit: Pick<AuditService, 'record'> },
) {
  const { store, clock, reader } = runtime;
  const { promptObservability: observability } = settings;

  return {
    async list(caller: Caller, filter: PromptFilter, after: string, limit: number): Promise<RegisteredPrompt[]> {
      return (await store.read<VersionRow>(listLatest(caller.subject, filter, after, limit))).map(fromRow);
    },

    /** Without a version, the latest. */
    find: (from: Visibility, target: PromptTarget): Promise<RegisteredPrompt | undefined> => find(from, target, NOW),

    /** Every version that a template ever had in the caller's own library: none of them can become something else. */
    versions: async (from: Visibility, templateId: string): Promise<string[]> =>
      (await knowledgeOf({ owner: ownerOf(from), templateId })).versions.map(({ version }) => version),

    /** What is wrong with what is said to be a template. */
    check: (value: unknown): Refusal | undefined => shapeMisfits(value) ?? checkTemplate(value as PromptTemplate),

    /** Takes a version in as the latest of its template, which need not be there yet unless `mustExist` says so. */
    async install(
      author: Author,
      template: PromptTemplate,
      { mustExist, also }: { readonly mustExist?: boolean; readonly also: Also<RegisteredPrompt> },
    ): Promise<RegisteredPrompt | Refusal> {
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        const prepared = await prepare(author, template, mustExist ?? false);
        if (isRefusal(prepared)) return prepared;
        const { registered, writes } = prepared;
        if (await commitUnless('revision', store, [...writes, ...also(registered)])) return registered;
      }
      return CONTENDED;
    },

    /** The same, for whoever commits it together with something else. */
    prepare: (author: Author, template: PromptTemplate): Promise<PreparedPrompt | Refusal> =>
      prepare(author, template, false),

    /** For templates that come with the host. A version that is there stays as it is. */
    async installShared(template: PromptTemplate): Promise<void> {
      const known = await knowledgeOf({ owner: HOST_OWNER, templateId: template.templateId });
      if (known.versions.some(({ version }) => version === template.version)) return;
      const version = nextVersion(known, bodyOf(template));
      if (isRefusal(version)) throw new Error(`${template.templateId}: ${version.message}`);
      await commitUnless('revision', store, version.writes);
    },

    /** Nobody gets it any more but runs that began before. */
    remove: (author: Author, templateId: string, also: () => Unit): Promise<Refusal | undefined> =>
      change(author, templateId, ({ key, revision, versions }) => {
        if (!versions.some(isThere)) return undefined;
        return [
          moveLatest(key, revision, null),
          removeVersions(key, clock.now()),
          ...also(),
          ...record(author, 'prompt.remove', templateId),
        ];
      }),

    /** Takes one version back: the one before it is the latest again. */
    withdraw: (author: Author, target: PromptVersion, also: () => Unit): Promise<Refusal | undefined> =>
      change(author, target.templateId, (known) => {
        const writes = withdrawal(author, known, target);
        return writes && [...writes, ...also()];
      }),

    /** The same, for whoever commits it together with something else. Nothing where it is not there. */
    async withdrawal(author: Author, target: PromptVersion): Promise<Unit> {
      const known = await knowledgeOf({ owner: ownerOf(author.subject), templateId: target.templateId });
      return withdrawal(author, known, target) ?? [];
    },

    /** What a node would be given for these values. No model is called. */
    async render(caller: Caller, { target, variables, contentTrust }: Preview): Promise<Composition | Refusal> {
      const found = await find(caller.subject, target, NOW);
      if (!found) return NOT_FOUND;
      const composed = compose(found.template, {
        variables,
        overrides: target.variableOverrides,
        trustOf: ({ source }) => (source === 'context' ? 'trusted' : contentTrust),
      });
      if (!('problem' in composed)) return composed;
      return refuse(composed.problem.code, composed.problem.message, composed.problem.details);
    },

    /** What nodes get: what their run may see, as it was when the run began where it is gone by now. */
    seam: (async ({ targets }, { tenant, runId }) => {
      const run = await reader.row({ tenant }, runId);
      if (!run) throw new Error(`run ${runId} is missing`);
      const from = { tenant, workspace: run.workspace ?? undefined };
      const found = await Promise.all(targets.map((target) => find(from, target, run.created_at)));
      return { templates: found.map((prompt) => prompt?.template ?? null), observability };
    }) satisfies SeamDrivers['prompts'],
  };

  async function find(from: Visibility, target: PromptTarget, since: number): Promise<RegisteredPrompt | undefined> {
    const { templateId, version, libraryId = LIBRARY_ID } = target;
    if (libraryId !== LIBRARY_ID) return undefined;
    if (version !== undefined) return readOne(findVersion(from, templateId, version, since));
    return (await readOne(findLatest(from, templateId))) ?? readOne(findRemoved(from, templateId, since));
  }

  async function readOne(statement: Statement): Promise<RegisteredPrompt | undefined> {
    const [row] = await store.read<VersionRow>(statement);
    return row && fromRow(row);
  }

  async function knowledgeOf(key: PromptKey): Promise<Known> {
    const [head] = await store.read<{ revision: number }>(findRevision(key));
    const versions = await store.read<KnownVersion>(listVersions(key));
    return { key, revision: head?.revision ?? 0, versions };
  }

  /** A template belongs to the host, the whole tenant or a workspace; only those who belong there may change it. */
  async function prepare(
    author: Author,
    template: PromptTemplate,
    mustExist: boolean,
  ): Promise<PreparedPrompt | Refusal> {
    const { subject } = author;
    const { templateId, version } = template;
    const refusal = checkTemplate(template);
    if (refusal) return refusal;
    const known = await knowledgeOf({ owner: ownerOf(subject), templateId });
    const isThereYet = known.versions.some(isThere);
    if (!isThereYet) {
      const elsewhere = await find(subject, { templateId }, NOW);
      if (elsewhere?.source === 'host') return mustExist ? READ_ONLY : TAKEN;
      if (mustExist) return elsewhere ? READ_ONLY : NOT_FOUND;
    }
    const next = nextVersion(known, bodyOf(template));
    if (isRefusal(next)) return next;
    const audited = record(author, isThereYet ? 'prompt.update' : 'prompt.create', templateId, version);
    return { ...next, writes: [...next.writes, ...audited] };
  }

  function nextVersion({ key, revision, versions }: Known, template: PromptTemplate): PreparedPrompt | Refusal {
    const { version } = template;
    const digest = digestOf(template);
    const refusal = checkSuccession({ version, digest }, versions);
    if (refusal) return refusal;
    const before = versions.find((known) => known.version === version);
    const row: VersionRow = {
      owner: key.owner,
      template_id: key.templateId,
      version,
      revision: revision + 1,
      kind: template.kind,
      model_class: template.modelHints?.modelClass ?? null,
      digest,
      body: JSON.stringify(template),
      created_at: before?.created_at ?? clock.now(),
      removed_at: null,
    };
    const kept = before ? [restoreVersion(key, version, row.revision)] : insertVersion(row, template.tags ?? []);
    return { registered: fromRow(row), writes: [moveLatest(key, revision, version), ...kept] };
  }

  /** Undefined where there is no such version to take back. */
  function withdrawal(
    author: Author,
    { key, revision, versions }: Known,
    { templateId, version }: PromptVersion,
  ): Unit | undefined {
    const there = versions.filter(isThere);
    if (!there.some((known) => known.version === version)) return undefined;
    const latest = there.find((known) => known.version !== version)?.version ?? null;
    return [
      moveLatest(key, revision, latest),
      removeVersions(key, clock.now(), version),
      ...record(author, 'prompt.withdraw', templateId, version),
    ];
  }

  /** Nothing to do, by `decide`, means that there is nothing there to change. */
  async function change(
    { subject }: Author,
    templateId: string,
    decide: (known: Known) => Unit | undefined,
  ): Promise<Refusal | undefined> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const unit = decide(await knowledgeOf({ owner: ownerOf(subject), templateId }));
      if (!unit) return (await find(subject, { templateId }, NOW)) ? READ_ONLY : NOT_FOUND;
      if (await commitUnless('revision', store, unit)) return undefined;
    }
    return CONTENDED;
  }

  function record({ subject }: Author, action: AuditAction, target: string, version?: string): Unit {
    const { tenant, workspace, principal: actor } = subject;
    const details = version === undefined ? {} : { details: { version } };
    return audit.record({ tenant, workspace, actor, action, target, ...details });
  }
}

/** What a preview is made with. */
export interface Filling {
  readonly variables: JsonObject;
  /** Values that the reference brings: the author's, and as they are to be. */
  readonly overrides?: JsonObject | undefined;
  readonly trustOf: (variable: PromptVariable) => ContentTrust;
}

/** Secrets stand in a preview by their name alone, whatever the caller wrote. */
export function compose(
  template: PromptTemplate,
  { variables, overrides = {}, trustOf }: Filling,
): ReturnType<typeof composePrompt> {
  const [given, written] = [redactValue(variables), redactValue(overrides)];
  return composePrompt(
    template,
    (variable) => {
      const override = own(written, variable.name);
      const value = override ?? own(given, variable.name);
      if (variable.source === 'secret') return asWritten(secretMarker(secretIdOf(value) ?? variable.name));
      if (override !== undefined) return asWritten(override);
      const part = extract(variable, value);
      return { value: part, shown: part, trust: trustOf(variable) };
    },
    { digest: sha256Hex, redact: redactText },
  );
}

function asWritten(value: unknown): Binding {
  return { value, shown: value, trust: 'trusted' };
}

function secretIdOf(given: unknown): string | undefined {
  return typeof given === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(given) ? given : undefined;
}

const READ_ONLY = refuse('forbidden', 'This template comes with the host or is of the whole tenant: it is not yours.');
const TAKEN = refuse('conflict', 'A template that comes with the host has this id.');
const CONTENDED = refuse('conflict', 'The template is being changed by others. Try again.');

function isThere({ removed_at }: KnownVersion): boolean {
  return removed_at === null;
}

/** The template without what the host says of it. */
export function bodyOf({ meta, ...template }: PromptTemplate): PromptTemplate {
  return meta?.author === undefined ? template : { ...template, meta: { author: meta.author } };
}

function digestOf(template: PromptTemplate): string {
  return sha256Hex(canonicalJson(template));
}

function fromRow(row: VersionRow): RegisteredPrompt {
  const body = JSON.parse(row.body) as PromptTemplate;
  const source = row.owner === HOST_OWNER ? 'host' : 'user';
  const createdAt = new Date(row.created_at).toISOString();
  return { template: { ...body, meta: { ...body.meta, createdAt, source } }, source, digest: row.digest };
}
