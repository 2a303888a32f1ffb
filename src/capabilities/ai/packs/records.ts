import { notShadowed, ownerOf, ownerPrecedence, VISIBLE_OWNERS } from '../../../store/definitions.ts';
import type { Visibility } from '../../../store/log.ts';
import { type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration, Store } from '../../../store/store.ts';
import { type History, readHistory, type VersionedKey, type VersionedTables } from '../../../store/versioned-rows.ts';
import type { PackPlace } from './door.ts';

/** The tables of installed packs. */
export const PACK_TABLES: readonly Migration[] = [
  {
    id: 'packs/0001',
    statements: [
      // One row per pack: which version is current, null once it was uninstalled. Each change increments `revision`.
      `CREATE TABLE packs (
        owner TEXT NOT NULL,
        name TEXT NOT NULL,
        revision BIGINT NOT NULL,
        current TEXT,
        updated_at BIGINT NOT NULL,
        PRIMARY KEY (owner, name)
      ) $clustered`,
      // A removed version stays: its number is never given to other content.
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

/** The versioned tables of packs: the current version of each, and all versions. */
export const PACKS: VersionedTables = { heads: 'packs', versions: 'pack_versions', id: 'name', pointer: 'current' };

interface VersionRow {
  readonly owner: string;
  readonly name: string;
  readonly version: string;
  /** The revision of the pack at which this version became current. */
  readonly revision: number;
  /** Integrity of what it came in: the file, or the archive of a registry. */
  readonly integrity: string;
  /** Digest of the content. */
  readonly digest: string;
  /** The exact text of `pack.json`. */
  readonly body: string;
  readonly provenance: string;
  readonly removed_at: number | null;
}

/** A stored version, and when its pack was last changed. */
export interface PackRow extends VersionRow {
  readonly updated_at: number;
}

/** The columns of a version that a decision about the next one depends on. */
export type KnownVersion = Pick<VersionRow, 'version' | 'digest' | 'provenance' | 'removed_at'>;

/** What is stored about a pack, read before it is changed. */
export type PackHistory = History<KnownVersion>;

/** Reads the history of a pack of one owner. */
export function readPackHistory(store: Store, key: VersionedKey): Promise<PackHistory> {
  return readHistory(store, PACKS, key, ['version', 'digest', 'provenance', 'removed_at']);
}

const CURRENT = `SELECT pack_versions.*, packs.updated_at FROM packs JOIN pack_versions USING (owner, name)
  WHERE pack_versions.version = packs.current`;

/** The current version, of the nearest owner that has the pack. */
export function findCurrent(from: Visibility, name: string): Statement {
  return sql(
    `${CURRENT} AND name = $3 AND ${VISIBLE_OWNERS} ORDER BY ${ownerPrecedence('owner')} LIMIT 1`,
    ownerOf(from),
    from.tenant,
    name,
  );
}

/** An installed version, whether or not it is current. */
export function findVersion(from: Visibility, name: string, version: string): Statement {
  return sql(
    `SELECT pack_versions.*, packs.updated_at FROM packs JOIN pack_versions USING (owner, name)
     WHERE name = $3 AND version = $4 AND removed_at IS NULL AND ${VISIBLE_OWNERS} ORDER BY ${ownerPrecedence('owner')} LIMIT 1`,
    ownerOf(from),
    from.tenant,
    name,
    version,
  );
}

/** Packs that may be used from here, the most recently changed first. */
export function listCurrent(from: Visibility, after: PackPlace, limit: number): Statement {
  return sql(
    `${CURRENT} AND ${VISIBLE_OWNERS} AND (updated_at < $3 OR (updated_at = $3 AND name > $4))
       AND ${notShadowed('packs', 'name', 'nearer.current IS NOT NULL')}
     ORDER BY updated_at DESC, name LIMIT $5`,
    ownerOf(from),
    from.tenant,
    after.updatedAt,
    after.name,
    limit,
  );
}

/** Inserts a version; one that was removed is restored, with the provenance of the new installation. */
export function putVersion(row: VersionRow): Write {
  return {
    sql: `INSERT INTO pack_versions (owner, name, version, revision, integrity, digest, body, provenance)
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
          ON CONFLICT (owner, name, version) DO UPDATE SET revision = excluded.revision,
            integrity = excluded.integrity, provenance = excluded.provenance, removed_at = NULL`,
    params: [row.owner, row.name, row.version, row.revision, row.integrity, row.digest, row.body, row.provenance],
  };
}

/** An agent of a version of a pack. */
export interface AgentRow {
  readonly owner: string;
  readonly agent_id: string;
  /** Name of the pack that it comes from. */
  readonly name: string;
  readonly version: string;
  readonly body: string;
}

/** Inserts an agent, unless its version was installed before: versions never change. */
export function putAgent({ owner, agent_id, name, version, body }: AgentRow): Write {
  return {
    sql: `INSERT INTO pack_agents (owner, agent_id, name, version, body) VALUES ($1, $2, $3, $4, $5)
          ON CONFLICT (owner, agent_id, name, version) DO NOTHING`,
    params: [owner, agent_id, name, version, body],
  };
}

const CURRENT_AGENTS = `pack_agents JOIN packs USING (owner, name) WHERE pack_agents.version = packs.current`;

/** The agents of current versions, each of the nearest owner that has it. */
export function listAgents(from: Visibility, limit: number): Statement {
  return sql(
    `SELECT pack_agents.* FROM ${CURRENT_AGENTS} AND ${VISIBLE_OWNERS}
       AND NOT EXISTS (SELECT 1 FROM pack_agents other JOIN packs theirs USING (owner, name)
         WHERE other.version = theirs.current AND other.agent_id = pack_agents.agent_id AND other.${VISIBLE_OWNERS}
           AND (${ownerPrecedence('other.owner')} < ${ownerPrecedence('packs.owner')}
             OR (other.owner = packs.owner AND other.name < packs.name)))
     ORDER BY agent_id LIMIT $3`,
    ownerOf(from),
    from.tenant,
    limit,
  );
}

/** An agent of a current version, of the nearest owner that has it. */
export function findAgent(from: Visibility, agentId: string): Statement {
  return sql(
    `SELECT pack_agents.* FROM ${CURRENT_AGENTS} AND agent_id = $3 AND ${VISIBLE_OWNERS}
     ORDER BY ${ownerPrecedence('owner')}, name LIMIT 1`,
    ownerOf(from),
    from.tenant,
    agentId,
  );
}

/** An agent of an installed version of its pack, whether or not that is current. */
export function findAgentVersion(from: Visibility, agentId: string, version: string): Statement {
  return sql(
    `SELECT pack_agents.* FROM pack_agents JOIN pack_versions USING (owner, name, version)
     WHERE agent_id = $3 AND version = $4 AND removed_at IS NULL AND ${VISIBLE_OWNERS}
     ORDER BY ${ownerPrecedence('owner')}, name LIMIT 1`,
    ownerOf(from),
    from.tenant,
    agentId,
    version,
  );
}

/** Another pack of the same owner whose current version has an agent with this id. */
export function findPackWithAgent({ owner, id }: VersionedKey, agentId: string): Statement {
  return sql(
    `SELECT pack_agents.name FROM ${CURRENT_AGENTS} AND owner = $1 AND agent_id = $2 AND name <> $3 LIMIT 1`,
    owner,
    agentId,
    id,
  );
}
