import { type Static, Type } from 'typebox';
import { NonEmpty, OneOf } from '../format/schema.ts';

const Count = Type.Integer({ minimum: 0 });
const Ms = Type.Number({ minimum: 0 });
const WHERE_PUBLIC = 'only where the metrics are public';

/** How the hosts on a store are, and what a tenant may take of them. */
export const HostHealth = Type.Object(
  {
    hosts: Type.Array(
      Type.Object({
        hostId: NonEmpty,
        version: Type.Optional(NonEmpty),
        isAnswering: Type.Boolean({ description: 'Whether it is the host that answers' }),
        workItems: Type.Optional(
          Type.Integer({ minimum: 0, description: `Work items that it holds, of all tenants; ${WHERE_PUBLIC}` }),
        ),
      }),
      { description: 'Hosts on this store with a heartbeat' },
    ),
    queue: Type.Optional(
      Type.Array(Type.Object({ kind: NonEmpty, due: Count, lagMs: Ms }), {
        description: `Work items that are due and wait for a host, of all tenants, and for how long the oldest has; ${WHERE_PUBLIC}`,
      }),
    ),
    quarantinedRuns: Type.Integer({ minimum: 0, description: 'Quarantined runs of all tenants' }),
    interrupts: Type.Optional(
      Type.Object({ open: Count, oldestMs: Ms }, { description: `Of all tenants; ${WHERE_PUBLIC}` }),
    ),
    store: Type.Object({
      kind: OneOf(['sqlite', 'postgres']),
      bytes: Type.Optional(Type.Integer({ minimum: 0, description: `Of all tenants; ${WHERE_PUBLIC}` })),
    }),
    tenant: Type.Object({
      storedBytes: Type.Integer({ minimum: 0, description: 'What the runs of the tenant take' }),
      storageLimitBytes: Count,
      retentionMs: Type.Integer({ minimum: 0, description: 'How long its runs are kept after their end' }),
    }),
    limits: Type.Object({
      maxNodeExecutions: Count,
      maxRunDurationMs: Count,
      maxRequestBodyBytes: Count,
      maxOutputCharacters: Count,
      maxVariableCharacters: Count,
      maxStateCharacters: Count,
      maxLogCharacters: Count,
      requestsPerSecond: Type.Integer({ minimum: 0, description: 'Of each key' }),
      inFlightPerTenant: Count,
      streamsPerTenant: Count,
      workPerTenant: Count,
    }),
    slowNodes: Type.Array(
      Type.Object({
        workflowId: NonEmpty,
        nodeId: NonEmpty,
        attempts: Type.Integer({ minimum: 1 }),
        medianMs: Ms,
        maxMs: Ms,
        slowestRunId: NonEmpty,
      }),
      { description: 'Nodes of the latest runs of the tenant that took longest; waiting is not counted' },
    ),
  },
  { $id: 'HostHealth' },
);
/** What operators look at first. */
export type HostHealth = Static<typeof HostHealth>;
