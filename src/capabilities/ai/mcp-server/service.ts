import type { PromptTemplate } from '../../../protocol/ai/prompts.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { canonicalJson, type JsonObject } from '../../../protocol/format/json.ts';
import type { InterruptView } from '../../../protocol/people/interrupts.ts';
import type { RunSnapshot } from '../../../protocol/running/runs.ts';
import type { WorkflowDefinition } from '../../../protocol/running/workflows.ts';
import { perform } from '../../../runtime/change.ts';
import { UnitRefused } from '../../../runtime/command.ts';
import { findAnswer, type IdempotencyRow, keepAnswer } from '../../../store/idempotency.ts';
import type { RunRow, StoredEvent } from '../../../store/log.ts';
import type { Unit } from '../../../store/sql.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { Interrupts } from '../../people/interrupts/door.ts';
import type { Caller } from '../../request.ts';
import type { EventService } from '../../running/events/service.ts';
import type { RunRequest, Runs } from '../../running/runs/door.ts';
import type { Workflows } from '../../running/workflows/door.ts';
import type { Prompts } from '../prompts/door.ts';
import { answerIn, type Elicitation, elicitationOf } from './questions.ts';
import { listExposed } from './records.ts';
import { isExposed, isSettled, type McpTool, type McpToolResult, problemsWith, resultOf, toolOf } from './rules.ts';

export type McpServerService = ReturnType<typeof mcpServerService>;

export interface McpServerNeeds {
  readonly workflows: Pick<Workflows, 'find'>;
  readonly runs: Pick<Runs, 'create' | 'row' | 'snapshot'>;
  readonly events: Pick<EventService, 'poll'>;
  readonly prompts: Pick<Prompts, 'list' | 'render'>;
  readonly interrupts: Pick<Interrupts, 'inspect' | 'mint' | 'resolve'>;
}

export interface ToolCall {
  readonly name: string;
  readonly arguments: JsonObject;
  /** Two calls with the same key are one, and have one run. */
  readonly key?: string | undefined;
}

/** How a caller waits for a run. */
export interface Waiting {
  readonly origin: string;
  readonly signal: AbortSignal;
  /** Told of each node that is done. */
  hear(nodeId: string): Promise<void>;
}

/** What came back for a question that a tool asked. */
export interface Response {
  readonly name: string;
  readonly token: string;
  readonly response: unknown;
}

export interface Answered {
  readonly result: McpToolResult;
  /** Nobody said anything; it would be rude to ask again. */
  readonly isAnswered: boolean;
}

export interface ToolPage {
  readonly tools: readonly McpTool[];
  /** The name that the next page comes after. */
  readonly next?: string;
}

export interface PromptPage {
  readonly templates: readonly PromptTemplate[];
  readonly next?: string;
}

const PAGE = 100;
/** How long a call waits for its run. Clients give up after a minute. */
const WAIT_MS = 30_000;
const KEY_RETENTION_MS = 24 * 60 * 60 * 1_000;
const KEY_CHARACTERS_MAX = 255;

/** Workflows as tools: a call is a run. It goes on when nobody waits for it any more. */
export function mcpServerService(
  { runtime, settings }: Host,
  { workflows, runs, events, prompts, interrupts }: McpServerNeeds,
) {
  const { store, clock } = runtime;
  const { version, publicUrl } = settings;

  return {
    version,
    publicUrl,
    report: (error: unknown): void => runtime.log.error({ err: error }, 'an MCP message could not be answered'),

    async tools({ subject }: Caller, after: string): Promise<ToolPage> {
      const rows = await store.read<{ body: string }>(listExposed(subject, after, PAGE));
      const found = rows.map(({ body }) => JSON.parse(body) as WorkflowDefinition);
      const tools = found.filter(isExposed).map(toolOf);
      const last = found.at(-1);
      return found.length < PAGE || !last ? { tools } : { tools, next: last.id };
    },

    async call(caller: Caller, call: ToolCall, waiting: Waiting): Promise<McpToolResult | Refusal> {
      const found = await workflows.find(caller, call.name);
      if (!found || !isExposed(found.definition)) return refuse('not_found', 'There is no such tool.');
      const problems = problemsWith(toolOf(found.definition), call.arguments);
      if (problems.length > 0) return refuse('validation_error', `The arguments do not fit: ${problems.join('; ')}.`);
      const runId = await runFor(caller, call);
      return isRefusal(runId) ? runId : outcome(caller, runId, waiting);
    },

    status: outcome,

    /** What a run asks, if this caller may answer it. The token says which question it was. */
    async question(caller: Caller, runId: string): Promise<(Elicitation & { readonly token: string }) | undefined> {
      const snapshot = await runs.snapshot(caller, runId);
      const { interrupt } = isRefusal(snapshot) ? {} : snapshot;
      const elicitation = interrupt && elicitationOf(interrupt as Pick<InterruptView, 'kind' | 'data'>);
      const token = elicitation && (await interrupts.mint(caller, runId, interrupt));
      return token === undefined ? undefined : { ...elicitation!, token };
    },

    /** Gives the run the answer of whoever is behind the client, as an act of the caller, and waits on. */
    async answer(caller: Caller, { token, response, name }: Response, waiting: Waiting): Promise<Answered | Refusal> {
      if (!caller.scopes.has('approvals:respond')) {
        return refuse('forbidden', 'This takes the scope approvals:respond.', { scopeRequired: 'approvals:respond' });
      }
      const asked = await interrupts.inspect(token);
      if (isRefusal(asked)) return asked;
      const { runId, nodeId } = asked;
      const row = await runs.row(caller, runId);
      if (row?.workflow_id !== name) return NOT_FOUND;
      const value = answerIn(asked, response);
      const resolve = () => interrupts.resolve(caller, runId, nodeId, value);
      const given = value && (await perform(runtime, resolve, { turn: runId }));
      if (given && isRefusal(given)) return given;
      const result = await outcome(caller, runId, waiting);
      return isRefusal(result) ? result : { result, isAnswered: value !== undefined };
    },

    snapshot: (caller: Caller, runId: string): Promise<RunSnapshot | Refusal> => runs.snapshot(caller, runId),

    /** Templates that make what a user says. */
    async prompts(caller: Caller, after: string): Promise<PromptPage> {
      const templates = (await prompts.list(caller, { kind: 'user' }, after, PAGE)).map(({ template }) => template);
      const last = templates.at(-1);
      return templates.length < PAGE || !last ? { templates } : { templates, next: last.templateId };
    },

    async prompt(caller: Caller, templateId: string, variables: JsonObject): Promise<{ text: string } | Refusal> {
      const composed = await prompts.render(caller, { target: { templateId }, variables, contentTrust: 'untrusted' });
      return isRefusal(composed) ? composed : { text: composed.shown };
    },
  };

  /** The run of this call: a new one, or the one that an earlier call with the same key started. */
  async function runFor(caller: Caller, { name, arguments: inputs, key }: ToolCall): Promise<string | Refusal> {
    if (key === undefined) return start(caller, name, inputs, () => []);
    if (key.length === 0 || key.length > KEY_CHARACTERS_MAX) {
      return refuse('validation_error', `A key has 1 to ${KEY_CHARACTERS_MAX} characters.`);
    }
    const { tenant, workspace = '', principal } = caller.subject;
    const recordKey = sha256Hex(JSON.stringify(['mcp', tenant, workspace, principal, key]));
    const digest = sha256Hex(canonicalJson({ name, inputs }));
    const known = await recall(recordKey, digest);
    if (known !== undefined) return known;
    try {
      return await start(caller, name, inputs, (body) => [
        keepAnswer({ record_key: recordKey, digest, status: 201, body }, KEY_RETENTION_MS),
      ]);
    } catch (error) {
      const twin = error instanceof UnitRefused && error.broke === 'idempotency' && (await recall(recordKey, digest));
      if (twin) return twin;
      throw error;
    }
  }

  async function recall(recordKey: string, digest: string): Promise<string | Refusal | undefined> {
    const [row] = await store.read<IdempotencyRow>(findAnswer(recordKey));
    if (!row || row.digest === digest) return row?.body;
    return refuse('idempotency_key_mismatch', 'This key was used for another call.');
  }

  async function start(
    caller: Caller,
    workflowId: string,
    inputs: JsonObject,
    also: (runId: string) => Unit,
  ): Promise<string | Refusal> {
    const request: RunRequest = {
      workflowId,
      inputs,
      configurable: {},
      // The caller is a model: its words carry no authority.
      metadata: { trustBoundary: 'untrusted' },
      exclusive: false,
      transport: 'mcp',
    };
    const started = await perform(runtime, () => runs.create(caller, request), { record: ({ runId }) => also(runId) });
    return isRefusal(started) ? started : started.runId;
  }

  /** Waits, within limits, until there is something to say about a run. */
  async function outcome(caller: Caller, runId: string, waiting: Waiting): Promise<McpToolResult | Refusal> {
    const row = await runs.row(caller, runId);
    if (!row) return NOT_FOUND;
    await settled(row, waiting);
    const snapshot = await runs.snapshot(caller, runId);
    if (isRefusal(snapshot)) return snapshot;
    const plan = await runtime.plans.pinned(row.workflow_owner, row.workflow_id, row.workflow_version);
    return resultOf(snapshot, plan.definition, waiting.origin);
  }

  async function settled(row: RunRow, { signal, hear }: Waiting): Promise<void> {
    const giveUpAt = clock.now() + WAIT_MS;
    for (let after = -1; ; ) {
      const polled = await events.poll(row, after, Math.max(0, giveUpAt - clock.now()), signal);
      for (const event of polled.events) await tellOf(event, hear);
      after = polled.events.at(-1)?.sequence ?? after;
      if (isSettled(polled.row.status) && after >= polled.row.sequence) return;
      if (signal.aborted || clock.now() >= giveUpAt) return;
    }
  }
}

async function tellOf({ type, body }: StoredEvent, hear: Waiting['hear']): Promise<void> {
  if (type === 'node.completed') await hear((JSON.parse(body) as { payload: { nodeId: string } }).payload.nodeId);
}
