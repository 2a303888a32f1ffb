import type { Extension, Host } from '../../src/capabilities/capability.ts';
import type { Caller } from '../../src/capabilities/request.ts';
import { createRuntime, type RuntimeContributions } from '../../src/runtime/create-runtime.ts';
import { Executor } from '../../src/runtime/executor.ts';
import type { NodeType } from '../../src/runtime/node-type.ts';
import { localSchemaValidator } from '../../src/runtime/validation/schema-validator.ts';
import type { Unit } from '../../src/store/sql.ts';
import { openInMemory } from '../../src/store/sqlite.ts';
import type { Migration, Store } from '../../src/store/store.ts';
import { CORE_TABLES } from '../../src/store/tables.ts';
import { createEgress } from '../../src/system/egress.ts';
import { sortableIds } from '../../src/system/ids.ts';
import { ManualClock } from './manual-clock.ts';

/** What a service under test is built on. */
export interface ServiceHost {
  readonly host: Host;
  readonly store: Store;
  readonly clock: ManualClock;
  close(): Promise<void>;
}

interface Options {
  readonly tables?: readonly Migration[];
  readonly nodes?: readonly NodeType[];
  readonly contributed?: Partial<RuntimeContributions>;
  readonly extensions?: readonly Extension[];
  readonly advertises?: (capability: string) => boolean;
  /** Stands before each commit: what it waits for is committed later. */
  readonly beforeCommit?: (unit: Unit) => Promise<void>;
}

/** A host without a server, on an empty SQLite store and a clock that stands still: services are called directly. */
export async function openServiceHost(options: Options = {}): Promise<ServiceHost> {
  const { tables = [], nodes = [], contributed = {}, extensions = [], advertises = () => false } = options;
  const clock = new ManualClock();
  const migrations = [...CORE_TABLES, ...tables];
  const opened = await openInMemory({ clock, migrations });
  const store = options.beforeCommit ? withDelays(opened, options.beforeCommit) : opened;
  let ids = 0;
  const runtime = createRuntime({
    store,
    clock,
    ids: sortableIds(clock.now, () => String(ids++).padStart(10, '0')),
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
    egress: createEgress({ clock, allowLoopback: false }),
    schemas: localSchemaValidator(),
    nodes,
    limits: { maxNodeExecutions: 1_000, maxRunDurationMs: 86_400_000 },
    contributed: {
      onAppend: [],
      onHint: new Map(),
      reactions: [],
      seams: {},
      tools: [],
      predictResponse: () => undefined,
      otherTypes: () => undefined,
      ...contributed,
    },
  });
  const executor = new Executor(runtime, { hostId: 'host-1', leaseMs: 10_000, capacity: 10, kinds: () => new Map() });
  const host: Host = {
    runtime,
    executor,
    version: '0.0.0',
    extensions: (point) => point.among(extensions),
    forgetRun: () => [],
    advertises,
  };
  const close = async (): Promise<void> => {
    await store.close();
  };
  return { host, store, clock, close };
}

function withDelays(store: Store, beforeCommit: (unit: Unit) => Promise<void>): Store {
  const commit: Store['commit'] = async (unit, options) => {
    await beforeCommit(unit);
    return store.commit(unit, options);
  };
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'commit') return commit;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** Somebody of a tenant who may do everything. */
export function callerOf(tenant: string, workspace?: string): Caller {
  return {
    subject: { tenant, tenantName: tenant, principal: 'ada', issuer: 'host', lane: 'user', workspace },
    scopes: new Set(),
    role: 'owner',
    keyId: 'key-1',
    isTest: false,
  };
}
