import { type Static, Type } from 'typebox';
import { AnyObject, Closed, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';
import { RunEventDoc } from './events.ts';
import { RUN_STATUSES, RunCost, RunId } from './runs.ts';

const Optional = Type.Optional;
const Nullable = <T extends Parameters<typeof Optional>[0]>(schema: T) => Type.Union([schema, Type.Null()]);

/** How two runs differ, in their logs and in their final states. */
export const RunDiff = Closed(
  {
    a: RunId,
    b: RunId,
    divergedAtSeq: Nullable(Type.Integer({ minimum: 0 })),
    eventDiffs: Type.Array(
      Closed({
        seq: Type.Integer({ minimum: 0 }),
        op: OneOf(['added', 'removed', 'changed'], { description: 'added: only in b; removed: only in a' }),
        aEvent: Optional(AnyObject),
        bEvent: Optional(AnyObject),
      }),
    ),
    stateDiff: AnyObject,
    truncated: Type.Boolean({ description: 'A run was still in flight, or some differences are omitted' }),
  },
  { $id: 'RunDiff' },
);

/** Ways in which one run can start another. */
export const CAUSES = ['mcp-tool-call', 'a2a-message', 'core.subWorkflow', 'core.dispatch'] as const;
/** One of CAUSES. */
export type Cause = (typeof CAUSES)[number];

/** The run that started this one, if any. */
export const RunAncestry = Closed(
  {
    runId: RunId,
    hostId: NonEmpty,
    parent: Nullable(
      Closed({
        runId: RunId,
        hostId: NonEmpty,
        cause: OneOf(CAUSES),
        wellKnownUrl: Optional(Type.String({ format: 'uri' })),
      }),
    ),
  },
  { $id: 'RunAncestry' },
);
/** The direct parent of a run, or null; read the ancestry of the parent to go further up. */
export type RunAncestry = Static<typeof RunAncestry>;

/** A traced period of a run, with hexadecimal ids as in OpenTelemetry. */
export const Span = Type.Object({
  name: NonEmpty,
  traceId: Optional(
    Type.String({ pattern: '^[0-9a-f]{32}$', description: 'Of the trace that the run was started in' }),
  ),
  spanId: Type.String({ pattern: '^[0-9a-f]{16}$' }),
  parentSpanId: Nullable(Type.String({ pattern: '^[0-9a-f]{16}$' })),
  kind: Type.Literal('internal'),
  status: Closed({ code: OneOf(['unset', 'ok', 'error']), message: Optional(Type.String()) }),
  startedAt: Timestamp,
  endedAt: Nullable(Timestamp),
  attributes: AnyObject,
});
/** A span of a run; `endedAt` is null while it lasts. */
export type Span = Static<typeof Span>;

/** Everything needed to diagnose a run, redacted so that it can be shared. */
export const DebugBundle = Type.Object(
  {
    bundleVersion: NonEmpty,
    generatedAt: Timestamp,
    host: Closed({ name: NonEmpty, version: NonEmpty, vendor: Optional(Type.String()) }),
    run: Type.Object({
      runId: RunId,
      workflowId: NonEmpty,
      status: OneOf(RUN_STATUSES),
      startedAt: Optional(Timestamp),
      endedAt: Nullable(Timestamp),
      error: Nullable(AnyObject),
      inputs: AnyObject,
      variables: AnyObject,
    }),
    metrics: Type.Object({
      openwopCost: Nullable(RunCost),
      nodeCount: Type.Integer({ minimum: 0 }),
      eventCount: Type.Integer({
        minimum: 0,
        description: 'Number of events in the log, even if the bundle omits some',
      }),
    }),
    spans: Type.Array(Span),
    annotations: Optional(Type.Array(AnyObject)),
    redactionApplied: Type.Boolean(),
    redactionMode: OneOf(['mask', 'omit', 'hash', 'passthrough']),
    truncated: Type.Boolean(),
    truncatedReason: Optional(NonEmpty),
    events: Type.Array(RunEventDoc),
  },
  { $id: 'DebugBundle' },
);
