import type { Extension, Host } from '../../src/capabilities/capability.ts';
import type { Caller } from '../../src/capabilities/request.ts';
import { NODES } from '../../src/capabilities/running/nodes/standard.ts';
import { ROLE_SCOPES, type Role } from '../../src/protocol/trust/scopes.ts';
import type { AppendListener } from '../../src/runtime/hub.ts';
import type { NodeType } from '../../src/runtime/node-type.ts';
import type { Reaction } from '../../src/runtime/reaction.ts';
import type { Migration } from '../../src/store/store.ts';
import type { ManualClock } from './manual-clock.ts';
import { callerOf, openServiceHost } from './service-host.ts';

/** What a test of a service needs of a host that executes runs. */
interface Parts {
  readonly tables?: readonly Migration[];
  readonly nodes?: readonly NodeType[];
  readonly reactions?: readonly Reaction[];
}

/** A host for tests that call services and execute runs. */
export interface CapabilityHost extends Host {
  readonly clock: ManualClock;
  /** What capabilities contribute to extension points; tests add to it. */
  readonly contributed: Extension[];
  /** Called with every append; tests add to it. */
  readonly onAppend: AppendListener[];
  /** Waits until a run has ended or waits for something. */
  runToRest(runId: string, tenant?: string): Promise<void>;
  close(): Promise<void>;
}

/** Opens a host that executes runs. Close it when the tests are done. */
export async function openCapabilityHost({
  tables,
  nodes = NODES,
  reactions = [],
}: Parts = {}): Promise<CapabilityHost> {
  const contributed: Extension[] = [];
  const onAppend: AppendListener[] = [];
  const { host, clock, close } = await openServiceHost({
    ...(tables ? { tables } : {}),
    nodes,
    contributed: { reactions, onAppend },
    extensions: contributed,
  });
  const { runtime, executor } = host;
  await executor.start();
  const isMoving = async (runId: string, tenant: string): Promise<boolean> => {
    const row = await runtime.reader.row({ tenant }, runId);
    return executor.inHand > 0 || row?.status === 'pending';
  };
  return {
    ...host,
    clock,
    contributed,
    onAppend,
    runToRest: async (runId, tenant = callerAs('anybody').subject.tenant) => {
      while (await isMoving(runId, tenant)) await new Promise<void>((resolve) => clock.soon(resolve));
    },
    close: async () => {
      await executor.stop(0);
      await close();
    },
  };
}

/** A caller of the tenant `alpha` with the scopes of a role. */
export function callerAs(principal: string, role: Role = 'owner'): Caller {
  const caller = callerOf('alpha');
  return { ...caller, subject: { ...caller.subject, principal }, scopes: new Set(ROLE_SCOPES[role]), role };
}
