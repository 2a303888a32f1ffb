import { NEARNESS, notShadowed, OWNERS, ownerOf } from '../../../store/definitions.ts';
import type { Visibility } from '../../../store/log.ts';
import { type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

export const PACK_TABLES: readonly Migration[] = [
  {
    id: 'packs/0001',
    statements: [
      // One row a pack: which version is in use, null once it was uninstalled. Each change moves `revision`.
      `CREATE TABLE packs (
        owner TEXT NOT NULL,
        name TEXT NOT NULL,
        revision BIGINT NOT NULL,
        current TEXT,
        updated_at BIGINT NOT NULL,
        PRIMARY KEY (owner, name)
      ) $clustered`,
      // A version stays when it is removed: its number is never given to anything else.
      `CREATE TABLE pack_versions (
        owner TEXT NOT NULL,
        name TEXT NOT NULL,
        version TEXT NOT NULL,
        revision BIGINT NOT NULL,
        integrity TEXT NOT NULL,
        digest TEXT NOT NULL,
        body TEXT NOT NULL,
        provenance TEXT NOT NULL,
        removed_at BIGINT,
        PRIMARY KEY (owner, name, version)
      ) $clustered`,
    ],
  },
  {
    id: 'packs/0002',
    statements: [
      // The agents of each version, with the texts that their manifests refer to.
      `CREATE TABLE pack_agents (
        owner TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        name TEXT NOT NULL,
        version TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (owner, agent_id, name, version)
      ) $clustered`,
    ],
  },
];

export interface VersionRow {
  readonly owner: string;
  readonly name: string;
  readonly version: string;
  /** The change that put it into use. */
  readonly revision: number;
  /** Of what it came in: the file, or the archive of a registry. */
  readonly integrity: string;
  /** Of the file. */
  readonly digest: string;
  /** The file, to the letter. */
  readonly body: string;
  readonly provenance: string;
  readonly removed_at: number | null;
}

export interface PackRow extends VersionRow {
  readonly updated_at: number;
}

/** What there is to know of a version before deciding on another. */
export type KnownVersion = Pick<VersionRow, 'version' | 'digest' | 'revision' | 'provenance' | 'removed_at'>;

export interface PackKey {
  readonly owner: string;
  readonly name: string;
}

export function findRevision({ owner, name }: PackKey): Statement {
  return sql('SELECT revision FROM packs WHERE owner = $1 AND name = $2', owner, name);
}

/** Every version there ever was, those that came last first. */
export function listVersions({ owner, name }: PackKey): Statement {
  return sql(
    `SELECT version, digest, revision, provenance, removed_at FROM pack_versions WHERE owner = $1 AND name = $2
     ORDER BY revision DESC`,
    owner,
    name,
  );
}

const CURRENT = `SELECT pack_versions.*, packs.updated_at FROM packs JOIN pack_versions USING (owner, name)
  WHERE pack_versions.version = packs.current`;

/** The version in use, of the nearest owner that has the pack. */
export function findCurrent(from: Visibility, name: string): Statement {
  return sql(
    `${CURRENT} AND name = $3 AND ${OWNERS} ORDER BY ${NEARNESS('owner')} LIMIT 1`,
    ownerOf(from),
    from.tenant,
    name,
  );
}

/** A version that is installed, whether or not it is the one in use. */
export function findVersion(from: Visibility, name: string, version: string): Statement {
  return sql(
    `SELECT pack_versions.*, packs.updated_at FROM packs JOIN pack_versions USING (owner, name)
     WHERE name = $3 AND version = $4 AND removed_at IS NULL AND ${OWNERS} ORDER BY ${NEARNESS('owner')} LIMIT 1`,
    ownerOf(from),
    from.tenant,
    name,
    version,
  );
}

/** Where a page of packs ended. */
export interface PackPlace {
  readonly updatedAt: number;
  readonly name: string;
}

/** Packs that may be used from here, what was changed last first. */
export function listCurrent(from: Visibility, after: PackPlace, limit: number): Statement {
  return sql(
    `${CURRENT} AND ${OWNERS} AND (updated_at < $3 OR (updated_at = $3 AND name > $4))
       AND ${notShadowed('packs', 'name', 'nearer.current IS NOT NULL')}
     ORDER BY updated_at DESC, name LIMIT $5`,
    ownerOf(from),
    from.tenant,
    after.updatedAt,
    after.name,
    limit,
  );
}

/** Puts another version into use, unless somebody has done so since it was read. */
export function moveCurrent({ owner, name }: PackKey, from: number, current: string | null, now: number): Write {
  if (from === 0) {
    return {
      sql: `INSERT INTO packs (owner, name, revision, current, updated_at) VALUES ($1, $2, 1, $3, $4)
            ON CONFLICT (owner, name) DO NOTHING`,
      params: [owner, name, current, now],
      expect: 1,
      keeps: 'revision',
    };
  }
  return {
    sql: `UPDATE packs SET revision = revision + 1, current = $4, updated_at = $5
          WHERE owner = $1 AND name = $2 AND revision = $3`,
    params: [owner, name, from, current, now],
    expect: 1,
    keeps: 'revision',
  };
}

/** A version that was there before is there again, with who has put it back. */
export function putVersion(row: VersionRow): Write {
  return {
    sql: `INSERT INTO pack_versions (owner, name, version, revision, integrity, digest, body, provenance)
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
          ON CONFLICT (owner, name, version) DO UPDATE SET revision = excluded.revision,
            integrity = excluded.integrity, provenance = excluded.provenance, removed_at = NULL`,
    params: [row.owner, row.name, row.version, row.revision, row.integrity, row.digest, row.body, row.provenance],
  };
}

export function removeVersion({ owner, name }: PackKey, version: string, now: number): Write {
  return {
    sql: 'UPDATE pack_versions SET removed_at = $4 WHERE owner = $1 AND name = $2 AND version = $3',
    params: [owner, name, version, now],
  };
}

export interface AgentRow {
  readonly owner: string;
  readonly agent_id: string;
  /** Of the pack that it comes with. */
  readonly name: string;
  readonly version: string;
  readonly body: string;
}

/** A version never changes, so its agents do not either. */
export function putAgent({ owner, agent_id, name, version, body }: AgentRow): Write {
  return {
    sql: `INSERT INTO pack_agents (owner, agent_id, name, version, body) VALUES ($1, $2, $3, $4, $5)
          ON CONFLICT (owner, agent_id, name, version) DO NOTHING`,
    params: [owner, agent_id, name, version, body],
  };
}

const IN_USE = `pack_agents JOIN packs USING (owner, name) WHERE pack_agents.version = packs.current`;

/** The agents in use, each of the nearest owner that has it. */
export function listAgents(from: Visibility, limit: number): Statement {
  return sql(
    `SELECT pack_agents.* FROM ${IN_USE} AND ${OWNERS}
       AND NOT EXISTS (SELECT 1 FROM pack_agents other JOIN packs theirs USING (owner, name)
         WHERE other.version = theirs.current AND other.agent_id = pack_agents.agent_id AND other.${OWNERS}
           AND (${NEARNESS('other.owner')} < ${NEARNESS('packs.owner')}
             OR (other.owner = packs.owner AND other.name < packs.name)))
     ORDER BY agent_id LIMIT $3`,
    ownerOf(from),
    from.tenant,
    limit,
  );
}

/** The agent in use, of the nearest owner that has it. */
export function findAgent(from: Visibility, agentId: string): Statement {
  return sql(
    `SELECT pack_agents.* FROM ${IN_USE} AND agent_id = $3 AND ${OWNERS}
     ORDER BY ${NEARNESS('owner')}, name LIMIT 1`,
    ownerOf(from),
    from.tenant,
    agentId,
  );
}

/** The agent as it is in a version of its pack that is installed, whether or not it is the one in use. */
export function findAgentVersion(from: Visibility, agentId: string, version: string): Statement {
  return sql(
    `SELECT pack_agents.* FROM pack_agents JOIN pack_versions USING (owner, name, version)
     WHERE agent_id = $3 AND version = $4 AND removed_at IS NULL AND ${OWNERS}
     ORDER BY ${NEARNESS('owner')}, name LIMIT 1`,
    ownerOf(from),
    from.tenant,
    agentId,
    version,
  );
}

/** Another pack of the same owner that has an agent of that name in use. */
export function findRivalPack({ owner, name }: PackKey, agentId: string): Statement {
  return sql(
    `SELECT pack_agents.name FROM ${IN_USE} AND owner = $1 AND agent_id = $2 AND name <> $3 LIMIT 1`,
    owner,
    agentId,
    name,
  );
}
