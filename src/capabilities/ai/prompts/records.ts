import type { PromptKind } from '../../../protocol/ai/prompts.ts';
import { HOST_OWNER, NEARNESS, notShadowed, OWNERS, ownerOf } from '../../../store/definitions.ts';
import type { Visibility } from '../../../store/log.ts';
import { type Param, placeholders, type Statement, sql, type Unit, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

export const PROMPT_TABLES: readonly Migration[] = [
  {
    id: 'prompts/0001',
    statements: [
      // One row a template: which version is the latest, null once it was removed. Each change moves `revision`.
      `CREATE TABLE prompts (
        owner TEXT NOT NULL,
        template_id TEXT NOT NULL,
        revision BIGINT NOT NULL,
        latest TEXT,
        PRIMARY KEY (owner, template_id)
      ) $clustered`,
      // A version stays when it is removed: runs that began before still have it, and its name is never given anew.
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

export interface VersionRow {
  readonly owner: string;
  readonly template_id: string;
  readonly version: string;
  /** The change that made it the latest. */
  readonly revision: number;
  readonly kind: PromptKind;
  readonly model_class: string | null;
  readonly digest: string;
  readonly body: string;
  readonly created_at: number;
  readonly removed_at: number | null;
}

/** What there is to know of a version before deciding on another. */
export type KnownVersion = Pick<VersionRow, 'version' | 'digest' | 'revision' | 'created_at' | 'removed_at'>;

export interface PromptKey {
  readonly owner: string;
  readonly templateId: string;
}

/** As a column holds text that may be any text. */
const asKey = (text: string): string => JSON.stringify(text);

export function findRevision({ owner, templateId }: PromptKey): Statement {
  return sql('SELECT revision FROM prompts WHERE owner = $1 AND template_id = $2', owner, templateId);
}

/** Every version there ever was, those that came last first. */
export function listVersions({ owner, templateId }: PromptKey): Statement {
  return sql(
    `SELECT version, digest, revision, created_at, removed_at FROM prompt_versions WHERE owner = $1 AND template_id = $2
     ORDER BY revision DESC`,
    owner,
    templateId,
  );
}

const JOINED = 'prompts JOIN prompt_versions USING (owner, template_id)';
const IS_LATEST = 'prompt_versions.version = prompts.latest';

/** The latest version, of the nearest library that has the template. */
export function findLatest(from: Visibility, templateId: string): Statement {
  return sql(
    `SELECT prompt_versions.* FROM ${JOINED}
     WHERE ${IS_LATEST} AND template_id = $3 AND ${OWNERS} ORDER BY ${NEARNESS('owner')} LIMIT 1`,
    ownerOf(from),
    from.tenant,
    templateId,
  );
}

/** One version; one that was removed only if that was after `since`. */
export function findVersion(from: Visibility, templateId: string, version: string, since: number): Statement {
  return sql(
    `SELECT * FROM prompt_versions
     WHERE template_id = $3 AND version = $4 AND ${OWNERS} AND (removed_at IS NULL OR removed_at > $5)
     ORDER BY ${NEARNESS('owner')} LIMIT 1`,
    ownerOf(from),
    from.tenant,
    templateId,
    version,
    since,
  );
}

/** The version that came last of those that were removed after `since`. */
export function findRemoved(from: Visibility, templateId: string, since: number): Statement {
  return sql(
    `SELECT * FROM prompt_versions WHERE template_id = $3 AND ${OWNERS} AND removed_at > $4
     ORDER BY ${NEARNESS('owner')}, revision DESC LIMIT 1`,
    ownerOf(from),
    from.tenant,
    templateId,
    since,
  );
}

export interface PromptFilter {
  readonly kind?: string | undefined;
  readonly tag?: string | undefined;
  readonly modelClass?: string | undefined;
  readonly source?: string | undefined;
}

/** Latest versions that can be used from here, by their ids. */
export function listLatest(from: Visibility, filter: PromptFilter, after: string, limit: number): Statement {
  const params: Param[] = [ownerOf(from), from.tenant, after];
  const where = [
    OWNERS,
    IS_LATEST,
    'template_id > $3',
    notShadowed('prompts', 'template_id', 'nearer.latest IS NOT NULL'),
  ];
  const add = (condition: (place: string) => string, value: string | undefined): void => {
    if (value === undefined) return;
    params.push(value);
    where.push(condition(`$${params.length}`));
  };
  add((place) => `kind = ${place}`, filter.kind);
  add((place) => `model_class = ${place}`, filter.modelClass && asKey(filter.modelClass));
  add((place) => `${SOURCE} = ${place}`, filter.source);
  add(
    (place) => `EXISTS (SELECT 1 FROM prompt_tags WHERE prompt_tags.owner = prompts.owner
      AND prompt_tags.template_id = prompts.template_id AND prompt_tags.version = prompts.latest AND tag = ${place})`,
    filter.tag && asKey(filter.tag),
  );
  params.push(limit);
  return {
    sql: `SELECT prompt_versions.* FROM ${JOINED} WHERE ${where.join(' AND ')}
          ORDER BY template_id LIMIT $${params.length}`,
    params,
  };
}

const SOURCE = `CASE prompts.owner WHEN '${HOST_OWNER}' THEN 'host' ELSE 'user' END`;

/** Moves a template to another latest version, unless somebody has moved it since it was read. */
export function moveLatest({ owner, templateId }: PromptKey, from: number, latest: string | null): Write {
  if (from === 0) {
    return {
      sql: `INSERT INTO prompts (owner, template_id, revision, latest) VALUES ($1, $2, 1, $3)
            ON CONFLICT (owner, template_id) DO NOTHING`,
      params: [owner, templateId, latest],
      expect: 1,
      keeps: 'revision',
    };
  }
  return {
    sql: `UPDATE prompts SET revision = revision + 1, latest = $4
          WHERE owner = $1 AND template_id = $2 AND revision = $3`,
    params: [owner, templateId, from, latest],
    expect: 1,
    keeps: 'revision',
  };
}

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
      row.model_class === null ? null : asKey(row.model_class),
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
      params: distinct.flatMap((tag) => [owner, template_id, version, asKey(tag)]),
    },
  ];
}

/** A version that was removed is there again. */
export function restoreVersion({ owner, templateId }: PromptKey, version: string, revision: number): Write {
  return {
    sql: `UPDATE prompt_versions SET removed_at = NULL, revision = $4
          WHERE owner = $1 AND template_id = $2 AND version = $3`,
    params: [owner, templateId, version, revision],
  };
}

/** Removes one version, or all of them. */
export function removeVersions({ owner, templateId }: PromptKey, now: number, version?: string): Write {
  return {
    sql: `UPDATE prompt_versions SET removed_at = $3 WHERE owner = $1 AND template_id = $2 AND removed_at IS NULL
          ${version === undefined ? '' : 'AND version = $4'}`,
    params: [owner, templateId, now, ...(version === undefined ? [] : [version])],
  };
}
