import type { Composition } from '../../../engine/models/prompt-text.ts';
import {
  PROMPT_VERSIONS_MAX,
  type PromptObservability,
  type PromptTarget,
  type PromptTemplate,
} from '../../../protocol/ai/prompts.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { AuditAction } from '../../../protocol/trust/audit-actions.ts';
import { and, type Change, changeOf, unchanged } from '../../../runtime/change.ts';
import type { SeamDrivers } from '../../../runtime/effects/seams.ts';
import { HOST_OWNER, ownerOf } from '../../../store/definitions.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Statement } from '../../../store/sql.ts';
import { isInstalled, moveCurrent, removeVersions, type VersionedKey } from '../../../store/versioned-rows.ts';
import type { Host } from '../../capability.ts';
import type { Caller } from '../../request.ts';
import { type Audit, entryBy } from '../../trust/audit/door.ts';
import { compose } from './composition.ts';
import { bodyOf, digestOf, registeredOf } from './document.ts';
import type {
  Author,
  Filling,
  Preview,
  PromptFilter,
  Prompts,
  PromptVersion,
  RegisteredPrompt,
  UsableVersion,
} from './door.ts';
import {
  findLatest,
  findRemoved,
  findVersion,
  insertVersion,
  listLatest,
  listVersions,
  PROMPTS,
  type PromptHistory,
  readPromptHistory,
  restoreVersion,
  type VersionRow,
} from './records.ts';
import { checkSuccession, checkTemplate, shapeMisfits } from './rules.ts';

/** The library of this host, for references that name a library. */
export const LIBRARY_ID = 'capstan';

/** Later than every removal: finds only versions that are installed now. */
const NOW = Number.MAX_SAFE_INTEGER;

const READ_ONLY = refuse(
  'forbidden',
  'This template comes with the host or belongs to the whole tenant, so you cannot change it.',
);
const TAKEN = refuse('conflict', 'A template that comes with the host has this id. Choose another id.');

/** The prompt library, as people, nodes and other capabilities read and change it. */
export class PromptService implements Prompts {
  readonly #host: Pick<Host, 'runtime'>;
  readonly #audit: Pick<Audit, 'entry'>;
  readonly #observability: PromptObservability;

  constructor(host: Pick<Host, 'runtime'>, audit: Pick<Audit, 'entry'>, observability: PromptObservability) {
    this.#host = host;
    this.#audit = audit;
    this.#observability = observability;
  }

  async list(caller: Caller, filter: PromptFilter, after: string, limit: number): Promise<RegisteredPrompt[]> {
    const rows = await this.#store.read<VersionRow>(listLatest(caller.subject, filter, after, limit));
    return rows.map(registeredOf);
  }

  find(from: Visibility, target: PromptTarget): Promise<RegisteredPrompt | undefined> {
    return this.#find(from, target, NOW);
  }

  async versions(from: Visibility, templateId: string): Promise<string[]> {
    const { versions } = await this.#historyOf(ownerOf(from), templateId);
    return versions.map(({ version }) => version);
  }

  async usable(from: Visibility, templateId: string): Promise<readonly UsableVersion[]> {
    const rows = await this.#store.read<Pick<VersionRow, 'version' | 'created_at'>>(
      listVersions(from, templateId, PROMPT_VERSIONS_MAX),
    );
    // A nearer library, which comes first, may have a version of the same name.
    return rows
      .filter(({ version }, index) => rows.findIndex((each) => each.version === version) === index)
      .map(({ version, created_at }) => ({ version, createdAt: created_at }));
  }

  check(value: unknown): Refusal | undefined {
    return shapeMisfits(value) ?? checkTemplate(value as PromptTemplate);
  }

  async install(author: Author, template: PromptTemplate): Promise<Change<RegisteredPrompt> | Refusal> {
    const refusal = checkTemplate(template);
    if (refusal) return refusal;
    const { subject } = author;
    const { templateId } = template;
    const history = await this.#historyOf(ownerOf(subject), templateId);
    if (history.versions.some(isInstalled)) return this.#addVersion(author, history, template, 'prompt.update');
    const elsewhere = await this.find(subject, { templateId });
    return elsewhere?.source === 'host' ? TAKEN : this.#addVersion(author, history, template, 'prompt.create');
  }

  async update(author: Author, template: PromptTemplate): Promise<Change<RegisteredPrompt> | Refusal> {
    const refusal = checkTemplate(template);
    if (refusal) return refusal;
    const history = await this.#historyOf(ownerOf(author.subject), template.templateId);
    if (!history.versions.some(isInstalled)) return this.#refuseMissing(author, template);
    return this.#addVersion(author, history, template, 'prompt.update');
  }

  async installShared(template: PromptTemplate): Promise<Change<unknown> | Refusal> {
    const history = await this.#historyOf(HOST_OWNER, template.templateId);
    const isKnown = history.versions.some(({ version }) => version === template.version);
    return isKnown ? unchanged(undefined) : this.#nextVersion(history, bodyOf(template));
  }

  async remove(author: Author, templateId: string): Promise<Change | Refusal> {
    const history = await this.#historyOf(ownerOf(author.subject), templateId);
    if (!history.versions.some(isInstalled)) return this.#refuseMissing(author, { templateId });
    const writes = [moveCurrent(PROMPTS, history, null), removeVersions(PROMPTS, history.key, this.#now)];
    return and(
      changeOf(undefined, writes, { retryOn: ['revision'] }),
      this.#auditEntry(author, 'prompt.remove', { templateId }),
    );
  }

  async withdraw(author: Author, target: PromptVersion): Promise<Change | Refusal> {
    const { templateId, version } = target;
    const history = await this.#historyOf(ownerOf(author.subject), templateId);
    const installed = history.versions.filter(isInstalled);
    if (!installed.some((known) => known.version === version)) return this.#refuseMissing(author, target);
    const previous = installed.find((known) => known.version !== version)?.version ?? null;
    const writes = [moveCurrent(PROMPTS, history, previous), removeVersions(PROMPTS, history.key, this.#now, version)];
    return and(
      changeOf(undefined, writes, { retryOn: ['revision'] }),
      this.#auditEntry(author, 'prompt.withdraw', target),
    );
  }

  async render(caller: Caller, { target, variables, contentTrust }: Preview): Promise<Composition | Refusal> {
    const found = await this.find(caller.subject, target);
    if (!found) return NOT_FOUND;
    const composed = compose(found.template, {
      variables,
      overrides: target.variableOverrides,
      trustOf: ({ source }) => (source === 'context' ? 'trusted' : contentTrust),
    });
    if (!('problem' in composed)) return composed;
    return refuse(composed.problem.code, composed.problem.message, composed.problem.details);
  }

  compose(template: PromptTemplate, filling: Filling): ReturnType<typeof compose> {
    return compose(template, filling);
  }

  /** Serves the effect seam of nodes: templates that the run may use, including those removed since the run began. */
  readonly findForRun: SeamDrivers['prompts'] = async ({ targets }, { tenant, runId }) => {
    const run = await this.#host.runtime.reader.row({ tenant }, runId);
    if (!run) throw new Error(`run ${runId} is missing`);
    const from = { tenant, workspace: run.workspace ?? undefined };
    const found = await Promise.all(targets.map((target) => this.#find(from, target, run.created_at)));
    return { templates: found.map((prompt) => prompt?.template ?? null), observability: this.#observability };
  };

  get #store() {
    return this.#host.runtime.store;
  }

  get #now(): number {
    return this.#host.runtime.clock.now();
  }

  /** Finds a version that is installed, or was until after `since`. */
  async #find(from: Visibility, target: PromptTarget, since: number): Promise<RegisteredPrompt | undefined> {
    const { templateId, version, libraryId = LIBRARY_ID } = target;
    if (libraryId !== LIBRARY_ID) return undefined;
    if (version !== undefined) return this.#readOne(findVersion(from, templateId, version, since));
    return (await this.#readOne(findLatest(from, templateId))) ?? this.#readOne(findRemoved(from, templateId, since));
  }

  async #readOne(statement: Statement): Promise<RegisteredPrompt | undefined> {
    const [row] = await this.#store.read<VersionRow>(statement);
    return row && registeredOf(row);
  }

  #historyOf(owner: string, templateId: string): Promise<PromptHistory> {
    return readPromptHistory(this.#store, { owner, id: templateId });
  }

  /** The author's own library does not have it: it belongs to somebody else, or to nobody. */
  async #refuseMissing({ subject }: Author, { templateId }: Pick<PromptTarget, 'templateId'>): Promise<Refusal> {
    return (await this.find(subject, { templateId })) ? READ_ONLY : NOT_FOUND;
  }

  #addVersion(
    author: Author,
    history: PromptHistory,
    template: PromptTemplate,
    action: AuditAction,
  ): Change<RegisteredPrompt> | Refusal {
    const added = this.#nextVersion(history, bodyOf(template));
    return isRefusal(added) ? added : and(added, this.#auditEntry(author, action, template));
  }

  #nextVersion(history: PromptHistory, body: PromptTemplate): Change<RegisteredPrompt> | Refusal {
    const { version } = body;
    const digest = digestOf(body);
    const refusal = checkSuccession({ version, digest }, history.versions);
    if (refusal) return refusal;
    const before = history.versions.find((known) => known.version === version);
    const row = rowOf(history, body, digest, before?.created_at ?? this.#now);
    const writes = [
      moveCurrent(PROMPTS, history, version),
      ...(before ? [restoreVersion(history.key, version, row.revision)] : insertVersion(row, body.tags ?? [])),
    ];
    return changeOf(registeredOf(row), writes, { retryOn: ['revision'] });
  }

  #auditEntry({ subject }: Author, action: AuditAction, { templateId: target, version }: PromptTarget): Change {
    return entryBy(this.#audit, subject, action, target, version === undefined ? undefined : { version });
  }
}

function rowOf(
  { key, revision }: { readonly key: VersionedKey; readonly revision: number },
  body: PromptTemplate,
  digest: string,
  createdAt: number,
): VersionRow {
  return {
    owner: key.owner,
    template_id: key.id,
    version: body.version,
    revision: revision + 1,
    kind: body.kind,
    model_class: body.modelHints?.modelClass ?? null,
    digest,
    body: JSON.stringify(body),
    created_at: createdAt,
    removed_at: null,
  };
}
