import type { PromptTemplate } from '../../../protocol/ai/prompts.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { InterruptView } from '../../../protocol/people/interrupts.ts';
import type { RunSnapshot } from '../../../protocol/running/runs.ts';
import type { WorkflowDefinition } from '../../../protocol/running/workflows.ts';
import { perform } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Interrupts } from '../../people/interrupts/door.ts';
import type { Caller } from '../../request.ts';
import type { Workflows } from '../../running/workflows/door.ts';
import type { Prompts } from '../prompts/door.ts';
import { answerFrom, type Elicitation, elicitationOf } from './elicitation.ts';
import { listExposed } from './records.ts';
import { isExposed, type McpTool, type McpToolResult, problemsWith, toolOf } from './rules.ts';
import { type ToolCall, type ToolRunNeeds, ToolRuns, type Waiting } from './tool-runs.ts';

/** What the MCP server needs of other capabilities. */
interface McpServerNeeds extends ToolRunNeeds {
  readonly workflows: Pick<Workflows, 'find'>;
  readonly prompts: Pick<Prompts, 'list' | 'render'>;
  readonly interrupts: Pick<Interrupts, 'inspect' | 'mint' | 'resolve'>;
}

/** The response of a person to a question of a run. */
interface ElicitationResponse {
  /** Name of the tool that was called. */
  readonly name: string;
  /** The token of the interrupt that was asked about. */
  readonly token: string;
  readonly response: unknown;
}

/** What came of a response. */
interface AnsweredCall {
  readonly result: McpToolResult;
  /** False if the person did not answer, and must not be asked again. */
  readonly isAnswered: boolean;
}

/** A page of tools. */
interface ToolPage {
  readonly tools: readonly McpTool[];
  /** The name that the next page comes after; absent on the last page. */
  readonly next?: string;
}

/** A page of prompt templates. */
interface PromptPage {
  readonly templates: readonly PromptTemplate[];
  readonly next?: string;
}

const PAGE = 20;

/** Workflows as tools, runs as resources and prompt templates as prompts, for MCP clients. */
export class McpServerService {
  readonly #runtime: Runtime;
  readonly #needs: McpServerNeeds;
  readonly #toolRuns: ToolRuns;

  constructor(runtime: Runtime, needs: McpServerNeeds) {
    this.#runtime = runtime;
    this.#needs = needs;
    this.#toolRuns = new ToolRuns(runtime, needs);
  }

  /** Tools that the caller may call, sorted by name. */
  async tools({ subject }: Caller, after: string): Promise<ToolPage> {
    const rows = await this.#runtime.store.read<{ body: string }>(listExposed(subject, after, PAGE));
    const found = rows.map(({ body }) => JSON.parse(body) as WorkflowDefinition);
    const tools = found.filter(isExposed).map(toolOf);
    const last = found.at(-1);
    return found.length < PAGE || !last ? { tools } : { tools, next: last.id };
  }

  /** Starts a run of the workflow behind a tool and waits for it. */
  async call(caller: Caller, call: ToolCall, waiting: Waiting): Promise<McpToolResult | Refusal> {
    const found = await this.#needs.workflows.find(caller, call.name);
    if (!found || !isExposed(found.definition)) return refuse('not_found', 'There is no such tool.');
    const problems = await problemsWith(toolOf(found.definition), call.arguments, this.#runtime);
    if (problems.length > 0) return refuse('validation_error', `The arguments are invalid: ${problems.join('; ')}.`);
    const runId = await this.#toolRuns.start(caller, call);
    return isRefusal(runId) ? runId : this.status(caller, runId, waiting);
  }

  /** Violations of a tool's input schema. */
  problemsWith(tool: McpTool, args: unknown): Promise<readonly string[]> {
    return problemsWith(tool, args, this.#runtime);
  }

  /** Waits for a run and describes it. */
  status(caller: Caller, runId: string, waiting: Waiting): Promise<McpToolResult | Refusal> {
    return this.#toolRuns.outcome(caller, runId, waiting);
  }

  /** The open interrupt of a run as a question to a person, with a token that names it; undefined if there is none for this caller. */
  async question(caller: Caller, runId: string): Promise<(Elicitation & { readonly token: string }) | undefined> {
    const snapshot = await this.#needs.runs.snapshot(caller, runId);
    const { interrupt } = isRefusal(snapshot) ? {} : snapshot;
    const elicitation = interrupt && elicitationOf(interrupt as Pick<InterruptView, 'kind' | 'data'>);
    const token = elicitation && (await this.#needs.interrupts.mint(caller, runId, interrupt));
    return token === undefined ? undefined : { ...elicitation!, token };
  }

  /** Answers an interrupt as the caller, with the response of the person at the client, and waits for the run. */
  async answer(caller: Caller, given: ElicitationResponse, waiting: Waiting): Promise<AnsweredCall | Refusal> {
    const { interrupts, runs } = this.#needs;
    if (!caller.scopes.has('approvals:respond')) {
      const message = 'Answering needs the scope approvals:respond.';
      return refuse('forbidden', message, { scopeRequired: 'approvals:respond' });
    }
    const asked = await interrupts.inspect(given.token);
    if (isRefusal(asked)) return asked;
    const { runId, nodeId } = asked;
    const row = await runs.row(caller, runId);
    if (row?.workflow_id !== given.name) return NOT_FOUND;
    const value = answerFrom(asked, given.response);
    if (value) {
      const resolve = () => interrupts.resolve(caller, runId, nodeId, value);
      const resolved = await perform(this.#runtime, resolve, { mutexKey: runId });
      if (isRefusal(resolved)) return resolved;
    }
    const result = await this.status(caller, runId, waiting);
    return isRefusal(result) ? result : { result, isAnswered: value !== undefined };
  }

  /** A run as it is now. */
  snapshot(caller: Caller, runId: string): Promise<RunSnapshot | Refusal> {
    return this.#needs.runs.snapshot(caller, runId);
  }

  /** Templates of user prompts, sorted by id. */
  async prompts(caller: Caller, after: string): Promise<PromptPage> {
    const found = await this.#needs.prompts.list(caller, { kind: 'user' }, after, PAGE);
    const templates = found.map(({ template }) => template);
    const last = templates.at(-1);
    return templates.length < PAGE || !last ? { templates } : { templates, next: last.templateId };
  }

  /** A template filled with values. */
  async prompt(caller: Caller, templateId: string, variables: JsonObject): Promise<{ text: string } | Refusal> {
    const preview = { target: { templateId }, variables, contentTrust: 'untrusted' } as const;
    const composed = await this.#needs.prompts.render(caller, preview);
    return isRefusal(composed) ? composed : { text: composed.shown };
  }
}
