import type { Extension, Host } from '../../src/capabilities/capability.ts';
import type { Caller } from '../../src/capabilities/request.ts';
import { NODES } from '../../src/capabilities/running/nodes/standard.ts';
import { isTerminalStatus } from '../../src/protocol/running/runs.ts';
import { ROLE_SCOPES, type Role } from '../../src/protocol/trust/scopes.ts';
import type { Reaction } from '../../src/runtime/append.ts';
import { createRuntime } from '../../src/runtime/create-runtime.ts';
import { Executor } from '../../src/runtime/executor.ts';
import type { NodeType } from '../../src/runtime/node-type.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import type { Migration } from '../../src/store/store.ts';
import { CORE_TABLES } from '../../src/store/tables.ts';
import { createEgress } from '../../src/system/egress.ts';
import { sortableIds } from '../../src/system/ids.ts';
import type { Log } from '../../src/system/log.ts';
import { freshFolder } from './database.ts';
import { ManualClock } from './manual-clock.ts';

/** What a test of a service needs of a host. */
interface Parts {
  readonly tables?: readonly Migration[];
  readonly nodes?: readonly NodeType[];
  readonly reactions?: readonly Reaction[];
}

/** A host without sockets and capabilities, on an SQLite store of its own, with a clock that the test moves. */
export interface CapabilityHost extends Host {
  readonly clock: ManualClock;
  /** What capabilities contribute to extension points; tests add to it. */
  readonly contributed: Extension[];
  /** Waits until a run has ended or waits for something. */
  runToRest(runId: string, tenant?: string): Promise<void>;
  close(): Promise<void>;
}

const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Opens a host for tests that call services directly. Close it when the tests are done. */
export async function openCapabilityHost({
  tables = [],
  nodes = NODES,
  reactions = [],
}: Parts = {}): Promise<CapabilityHost> {
  const folder = freshFolder();
  const clock = new ManualClock();
  const store = await openSqlite({
    folder: folder.path,
    clock,
    migrations: [...CORE_TABLES, ...tables],
    durable: false,
  });
  const runtime = createRuntime({
    store,
    clock,
    ids: sortableIds(clock.now, () => '0123456789'),
    log: SILENT,
    egress: createEgress({ clock, allowLoopback: false }),
    nodes,
    limits: { maxNodeExecutions: 1_000, maxRunDurationMs: 24 * 60 * 60 * 1_000 },
    contributed: { reactions, seams: {}, tools: [] },
  });
  const executor = new Executor(runtime, { hostId: 'test', leaseMs: 10_000, capacity: 10, kinds: () => new Map() });
  await executor.start();
  const contributed: Extension[] = [];
  return {
    runtime,
    executor,
    clock,
    contributed,
    version: '0',
    extensions: (point) => point.among(contributed),
    forgetRun: () => [],
    advertises: () => false,
    runToRest: async (runId, tenant = 'alpha') => {
      const isMoving = async (): Promise<boolean> => {
        const row = await runtime.reader.row({ tenant }, runId);
        return executor.inHand > 0 || (row !== undefined && !isTerminalStatus(row.status) && row.status === 'pending');
      };
      while (await isMoving()) await new Promise<void>((resolve) => clock.soon(resolve));
    },
    close: async () => {
      await executor.stop(0);
      await store.close();
      folder.remove();
    },
  };
}

/** A caller of the tenant `alpha` with the scopes of a role. */
export function callerAs(principal: string, role: Role = 'owner'): Caller {
  return {
    subject: { tenant: 'alpha', tenantName: 'alpha', principal, issuer: 'test', lane: 'user' },
    scopes: new Set(ROLE_SCOPES[role]),
    role,
    keyId: principal,
    isTest: false,
  };
}
