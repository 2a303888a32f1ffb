import type { PromptKind } from '../../../protocol/ai/prompts.ts';
import { HOST_OWNER, notShadowed, ownerOf, ownerPrecedence, VISIBLE_OWNERS } from '../../../store/definitions.ts';
import type { Visibility } from '../../../store/log.ts';
import { type Param, placeholders, type Statement, sql, type Unit, type Write } from '../../../store/sql.ts';
import type { Migration, Store } from '../../../store/store.ts';
import { type History, readHistory, type VersionedKey, type VersionedTables } from '../../../store/versioned-rows.ts';
import type { PromptFilter } from './door.ts';

/** The tables of the prompt library. */
export const PROMPT_TABLES: readonly Migration[] = [
  {
    id: 'prompts/0001',
    statements: [
      // One row per template: which version is the latest, null once it was removed. Each change increments `revision`.
      `CREATE TABLE prompts (
        owner TEXT NOT NULL,
        template_id TEXT NOT NULL,
        revision BIGINT NOT NULL,
        latest TEXT,
        PRIMARY KEY (owner, template_id)
      ) $clustered`,
      // A removed version stays: runs that began before still use it, and its number is never given to other content.
      `CREATE TABLE prompt_versions (
        owner TEXT NOT NULL,
        template_id TEXT NOT NULL,
        version TEXT NOT NULL,
        revision BIGINT NOT NULL,
        kind TEXT NOT NULL,
        model_class TEXT,
        digest TEXT NOT NULL,
        body TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        removed_at BIGINT,
        PRIMARY KEY (owner, template_id, version)
      ) $clustered`,
      `CREATE TABLE prompt_tags (
        owner TEXT NOT NULL,
        template_id TEXT NOT NULL,
        version TEXT NOT NULL,
        tag TEXT NOT NULL,
        PRIMARY KEY (owner, template_id, version, tag)
      ) $clustered`,
    ],
  },
];

/** The versioned tables of the library: the latest version of each template, and all versions. */
export const PROMPTS: VersionedTables = {
  heads: 'prompts',
  versions: 'prompt_versions',
  id: 'template_id',
  pointer: 'latest',
};

/** A stored version of a template. */
export interface VersionRow {
  readonly owner: string;
  readonly template_id: string;
  readonly version: string;
  /** The revision of the template at which this version became the latest. */
  readonly revision: number;
  readonly kind: PromptKind;
  readonly model_class: string | null;
  readonly digest: string;
  readonly body: string;
  readonly created_at: number;
  readonly removed_at: number | null;
}

/** The columns of a version that a decision about the next one depends on. */
export type KnownVersion = Pick<VersionRow, 'version' | 'digest' | 'created_at' | 'removed_at'>;

/** What is stored about a template, read before it is changed. */
export type PromptHistory = History<KnownVersion>;

/** Reads the history of a template in one library. */
export function readPromptHistory(store: Store, key: VersionedKey): Promise<PromptHistory> {
  return readHistory(store, PROMPTS, key, ['version', 'digest', 'created_at', 'removed_at']);
}

/** Column value for free text: JSON escapes what a column cannot hold. */
const columnText = (text: string): string => JSON.stringify(text);

const JOINED = 'prompts JOIN prompt_versions USING (owner, template_id)';
const IS_LATEST = 'prompt_versions.version = prompts.latest';

/** The latest version in the nearest library that has the template. */
export function findLatest(from: Visibility, templateId: string): Statement {
  return sql(
    `SELECT prompt_versions.* FROM ${JOINED}
     WHERE ${IS_LATEST} AND template_id = $3 AND ${VISIBLE_OWNERS} ORDER BY ${ownerPrecedence('owner')} LIMIT 1`,
    ownerOf(from),
    from.tenant,
    templateId,
  );
}

/** One version that is installed or was removed after `since`. */
export function findVersion(from: Visibility, templateId: string, version: string, since: number): Statement {
  return sql(
    `SELECT * FROM prompt_versions
     WHERE template_id = $3 AND version = $4 AND ${VISIBLE_OWNERS} AND (removed_at IS NULL OR removed_at > $5)
     ORDER BY ${ownerPrecedence('owner')} LIMIT 1`,
    ownerOf(from),
    from.tenant,
    templateId,
    version,
    since,
  );
}

/** The versions of a template that are installed in the libraries that can be used from here, newest first. */
export function listVersions(from: Visibility, templateId: string, limit: number): Statement {
  return sql(
    `SELECT version, created_at FROM prompt_versions
     WHERE template_id = $3 AND ${VISIBLE_OWNERS} AND removed_at IS NULL
     ORDER BY ${ownerPrecedence('owner')}, revision DESC LIMIT $4`,
    ownerOf(from),
    from.tenant,
    templateId,
    limit,
  );
}

/** The most recent version of those that were removed after `since`. */
export function findRemoved(from: Visibility, templateId: string, since: number): Statement {
  return sql(
    `SELECT * FROM prompt_versions WHERE template_id = $3 AND ${VISIBLE_OWNERS} AND removed_at > $4
     ORDER BY ${ownerPrecedence('owner')}, revision DESC LIMIT 1`,
    ownerOf(from),
    from.tenant,
    templateId,
    since,
  );
}

/** Latest versions that can be used from here, sorted by template id. */
export function listLatest(from: Visibility, filter: PromptFilter, after: string, limit: number): Statement {
  const params: Param[] = [ownerOf(from), from.tenant, after];
  const where = [
    VISIBLE_OWNERS,
    IS_LATEST,
    'template_id > $3',
    notShadowed('prompts', 'template_id', 'nearer.latest IS NOT NULL'),
  ];
  const add = (condition: (param: string) => string, value: string | undefined): void => {
    if (value === undefined) return;
    params.push(value);
    where.push(condition(`$${params.length}`));
  };
  add((param) => `kind = ${param}`, filter.kind);
  add((param) => `model_class = ${param}`, filter.modelClass && columnText(filter.modelClass));
  add((param) => `${SOURCE} = ${param}`, filter.source);
  add(
    (param) => `EXISTS (SELECT 1 FROM prompt_tags WHERE prompt_tags.owner = prompts.owner
      AND prompt_tags.template_id = prompts.template_id AND prompt_tags.version = prompts.latest AND tag = ${param})`,
    filter.tag && columnText(filter.tag),
  );
  params.push(limit);
  return {
    sql: `SELECT prompt_versions.* FROM ${JOINED} WHERE ${where.join(' AND ')}
          ORDER BY template_id LIMIT $${params.length}`,
    params,
  };
}

const SOURCE = `CASE prompts.owner WHEN '${HOST_OWNER}' THEN 'host' ELSE 'user' END`;

/** Inserts a new version and its tags. */
export function insertVersion(row: VersionRow, tags: readonly string[]): Unit {
  const { owner, template_id, version } = row;
  const insert: Write = {
    sql: `INSERT INTO prompt_versions (owner, template_id, version, revision, kind, model_class, digest, body, created_at)
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    params: [
      owner,
      template_id,
      version,
      row.revision,
      row.kind,
      row.model_class === null ? null : columnText(row.model_class),
      row.digest,
      row.body,
      row.created_at,
    ],
  };
  const distinct = [...new Set(tags)];
  if (distinct.length === 0) return [insert];
  return [
    insert,
    {
      sql: `INSERT INTO prompt_tags (owner, template_id, version, tag) VALUES ${placeholders(distinct.length, 4)}`,
      params: distinct.flatMap((tag) => [owner, template_id, version, columnText(tag)]),
    },
  ];
}

/** Restores a version that was removed, as of a revision of its template. */
export function restoreVersion({ owner, id }: VersionedKey, version: string, revision: number): Write {
  return {
    sql: `UPDATE prompt_versions SET removed_at = NULL, revision = $4
          WHERE owner = $1 AND template_id = $2 AND version = $3`,
    params: [owner, id, version, revision],
  };
}
