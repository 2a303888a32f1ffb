import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { canonicalJson, type JsonObject } from '../../../protocol/format/json.ts';
import type { TraceContext } from '../../../protocol/format/trace.ts';
import { and, type Change, changeOf, perform, unchanged, withResult } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { findIdempotencyRecord, type IdempotencyRow, saveIdempotencyRecord } from '../../../store/idempotency.ts';
import type { StoredEvent } from '../../../store/log.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { Caller } from '../../request.ts';
import { type Events, waitUntilSettled } from '../../running/events/door.ts';
import type { RunCreation, Runs } from '../../running/runs/door.ts';
import { type McpToolResult, resultOf } from './rules.ts';

/** A call of a tool. */
export interface ToolCall {
  readonly name: string;
  readonly arguments: JsonObject;
  /** Idempotency key: calls with the same key share one run. */
  readonly key?: string | undefined;
  readonly trace?: TraceContext | undefined;
}

/** How a caller waits for a run. */
export interface Waiting {
  readonly origin: string;
  readonly signal: AbortSignal;
  /** Called for each node that completes. */
  onNodeCompleted(nodeId: string): Promise<void>;
}

/** What the runs behind tools need of other capabilities. */
export interface ToolRunNeeds {
  readonly runs: Pick<Runs, 'create' | 'row' | 'snapshot'>;
  readonly events: Pick<Events, 'poll'>;
}

/** How long a call waits for its run. MCP clients give up after a minute. */
const WAIT_MS = 30_000;
const KEY_RETENTION_MS = 24 * 60 * 60 * 1_000;
const KEY_CHARACTERS_MAX = 255;

/** The runs behind calls of tools. A run continues when its caller no longer waits. */
export class ToolRuns {
  readonly #runtime: Runtime;
  readonly #needs: ToolRunNeeds;

  constructor(runtime: Runtime, needs: ToolRunNeeds) {
    this.#runtime = runtime;
    this.#needs = needs;
  }

  /** The run of a call: a new one, or the one that an earlier call with the same key started. */
  async start(caller: Caller, call: ToolCall): Promise<string | Refusal> {
    const { key } = call;
    if (key === undefined) return perform(this.#runtime, () => this.#create(caller, call));
    if (key.length === 0 || key.length > KEY_CHARACTERS_MAX) {
      return refuse('validation_error', `An idempotency key has 1 to ${KEY_CHARACTERS_MAX} characters.`);
    }
    return perform(this.#runtime, () => this.#createOnce(caller, call, key));
  }

  /** Waits, up to a limit, until the run has ended or needs a person; then describes it. */
  async outcome(caller: Caller, runId: string, waiting: Waiting): Promise<McpToolResult | Refusal> {
    const { runs } = this.#needs;
    const row = await runs.row(caller, runId);
    if (!row) return NOT_FOUND;
    const { signal, onNodeCompleted } = waiting;
    await waitUntilSettled({ events: this.#needs.events, clock: this.#runtime.clock }, row, {
      waitMs: WAIT_MS,
      signal,
      onEvents: async (events) => {
        for (const nodeId of events.flatMap(completedNode)) await onNodeCompleted(nodeId);
      },
    });
    const snapshot = await runs.snapshot(caller, runId);
    if (isRefusal(snapshot)) return snapshot;
    const { plans } = this.#runtime;
    const { definition } = await plans.pinned(row.workflow_owner, row.workflow_id, row.workflow_version);
    return resultOf(snapshot, definition, waiting.origin);
  }

  async #create(caller: Caller, { name, arguments: inputs, trace }: ToolCall): Promise<Change<string> | Refusal> {
    const request: RunCreation = {
      workflowId: name,
      inputs,
      configurable: {},
      // The arguments come from a model, so the run treats them as untrusted.
      metadata: { trustBoundary: 'untrusted' },
      exclusive: false,
      transport: 'mcp',
      trace,
    };
    const start = await this.#needs.runs.create(caller, request);
    return isRefusal(start) ? start : withResult(start, ({ runId }) => runId);
  }

  async #createOnce(caller: Caller, call: ToolCall, key: string): Promise<Change<string> | Refusal> {
    const { tenant, workspace = '', principal } = caller.subject;
    const recordKey = sha256Hex(JSON.stringify(['mcp', tenant, workspace, principal, key]));
    const digest = sha256Hex(canonicalJson({ name: call.name, inputs: call.arguments }));
    const [record] = await this.#runtime.store.read<IdempotencyRow>(findIdempotencyRecord(recordKey));
    if (record?.digest === digest) return unchanged(record.body);
    if (record) return refuse('idempotency_key_mismatch', 'This key was used for another call.');
    const start = await this.#create(caller, call);
    if (isRefusal(start)) return start;
    const stored = saveIdempotencyRecord(
      { record_key: recordKey, digest, status: 201, body: start.result },
      KEY_RETENTION_MS,
    );
    return and(start, changeOf(undefined, [stored], { retryOn: ['idempotency'] }));
  }
}

function completedNode({ type, body }: StoredEvent): string[] {
  if (type !== 'node.completed') return [];
  return [(JSON.parse(body) as { payload: { nodeId: string } }).payload.nodeId];
}
