import { formatToolResult } from '../../../engine/models/prompt-text.ts';
import { isOver } from '../../../engine/run/run.ts';
import { type Agent, CONFIDENCE_THRESHOLD } from '../../../protocol/ai/agents.ts';
import type { ProviderUsage } from '../../../protocol/ai/models.ts';
import { canonicalJson, isObject, type JsonObject } from '../../../protocol/format/json.ts';
import type { NewEvent } from '../../../protocol/running/events.ts';
import { askModel, type ModelAnswer, modelChoice } from '../../../runtime/ask-model.ts';
import type { ChildRequest, ChildResult } from '../../../runtime/child-request.ts';
import type { ResolvedAgent } from '../../../runtime/effects/agent.ts';
import type { ModelMessage, ModelTool, ToolCall } from '../../../runtime/effects/model.ts';
import type { ToolResult } from '../../../runtime/effects/tool-seam.ts';
import { isFinal, type NodeContext, NodeFailure, type Outcome } from '../../../runtime/node-type.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { redactValue } from '../../../system/redaction.ts';
import { Mailbox, Rounds, type SentEnvelope } from '../envelopes/door.ts';
import { type Decision, readDecision, type SchemaRule } from './decision.ts';
import { ReasoningStream, reasoned } from './reasoning.ts';
import { modelNames } from './tool-names.ts';

/** Tool calls that are executed per step; the model is told to repeat the rest. */
const CALLS_PER_STEP_MAX = 16;
/** How often the model may correct an answer that does not match the schema. */
const CORRECTIONS_MAX = 2;

/** What an agent is asked to do in one invocation. */
interface Assignment {
  /** The same for every attempt of the node. */
  readonly id: string;
  readonly resolved: ResolvedAgent;
  readonly agentId: string;
  /** The conversation before the first answer. */
  readonly messages: readonly ModelMessage[];
  readonly rule: SchemaRule | undefined;
  readonly stepsMax: number;
  /** Whether envelopes are read; without, they are decisions like any other. */
  readonly readsEnvelopes?: boolean;
}

/**
 * The loop of one agent: ask the model, call the tools that it asks for, until it decides. Answers and tool results are
 * recorded as effects of the node, so an invocation that starts over repeats its steps without repeating the calls.
 */
export class Invocation {
  readonly #context: NodeContext;
  readonly #assignment: Assignment;
  readonly #id: string;
  readonly #tools: readonly ModelTool[];
  readonly #names: ReadonlyMap<string, string>;
  readonly #messages: ModelMessage[];
  readonly #usage: ProviderUsage[] = [];
  readonly #called: string[] = [];
  readonly #mailbox: Mailbox | undefined;
  #corrections = 0;
  #childrenUsed = 0;

  constructor(context: NodeContext, assignment: Assignment) {
    const { id, resolved, messages } = assignment;
    this.#context = context;
    this.#assignment = assignment;
    this.#id = id;
    this.#names = modelNames(resolved.tools.map(({ name }) => name));
    this.#tools = resolved.tools.map(({ description, inputSchema }, index) => ({
      name: [...this.#names.keys()][index]!,
      description,
      inputSchema,
    }));
    const { rule } = assignment;
    const isAnswer = async (value: unknown): Promise<boolean> =>
      rule !== undefined && (await context.schemas.validate(rule.schema, value)).length === 0;
    this.#mailbox = assignment.readsEnvelopes ? new Mailbox(context, new Rounds(context), isAnswer) : undefined;
    this.#messages = [...(this.#mailbox?.brief(messages) ?? messages)];
  }

  async run(): Promise<Outcome> {
    const { stepsMax } = this.#assignment;
    for (let step = 1; step <= stepsMax; step++) {
      const answer = await this.#ask(step === stepsMax);
      const received = await this.#mailbox?.receive(answer, this.#messages);
      if (received && 'interrupt' in received) return received;
      if (received && 'envelope' in received) return this.#closeWith(received.envelope, { answer, steps: step });
      if (received) {
        this.#messages.splice(0, this.#messages.length, ...received.messages);
        // The mailbox has limits of its own: an answer to the agent's question must not use up its last step.
        step--;
        continue;
      }
      const calls = callsIn(answer);
      if (calls.length === 0) {
        const outcome = await this.#conclude(answer, step);
        if (outcome) return outcome;
      } else if (step < stepsMax) {
        await this.#use(answer, calls);
      }
    }
    throw failure('agent_steps_exhausted', `The agent did not decide within ${stepsMax} steps.`);
  }

  async #ask(isLast: boolean): Promise<ModelAnswer> {
    const tools =
      this.#tools.length === 0 ? {} : { tools: this.#tools, ...(isLast ? { toolChoice: 'none' as const } : {}) };
    const thoughts = new ReasoningStream(this.#assignment.agentId, this.#context.configurable, (event) =>
      this.#tell(event),
    );
    const answer = await askModel(this.#context, {
      ...modelChoice(this.#context),
      onReasoning: (piece) => thoughts.add(piece),
      messages: [...this.#messages],
      ...tools,
    });
    thoughts.close();
    if (answer.result.usage) this.#usage.push(answer.result.usage);
    if (answer.result.refusal) {
      this.#tell({ type: 'agent.invocation.completed', payload: { ...this.#bracket, outcome: 'refused' } });
      throw failure('envelope_refusal', 'The model refused to answer.');
    }
    return answer;
  }

  async #use(answer: ModelAnswer, calls: readonly ToolCall[]): Promise<void> {
    this.#reason(answer.content);
    this.#messages.push({ role: 'assistant', content: answer.content, toolCalls: calls });
    for (const [index, call] of calls.entries()) {
      const content =
        index < CALLS_PER_STEP_MAX ? await this.#call(call) : `Not called: ask for ${CALLS_PER_STEP_MAX} at most.`;
      this.#messages.push({ role: 'tool', toolCallId: call.id, name: call.name, content });
    }
  }

  /** Calls a tool if the agent's allow-list has it. The request is recorded either way. */
  async #call({ name, arguments: given }: ToolCall): Promise<string> {
    const toolName = this.#names.get(name) ?? (name || 'unnamed');
    const args = isObject(given) ? given : {};
    const callId = `${this.#id}:${this.#called.length}`;
    this.#called.push(toolName);
    const call = { agentId: this.#assignment.agentId, toolName, callId };
    this.#tell({ type: 'agent.toolCalled', payload: { ...call, ...this.#callFacts(toolName, args) } });
    if (!this.#assignment.resolved.allowed.includes(toolName)) {
      const error = { code: 'forbidden', message: 'The tool is not on the allow-list of this agent.' };
      this.#tell({ type: 'agent.toolReturned', payload: { ...call, status: 'forbidden', error } });
      return `Not called: ${error.message}`;
    }
    const { durationMs, ...result } = await this.#perform(call, args);
    if (this.#context.children[this.#childrenUsed]?.runId === result.childRunId) this.#childrenUsed++;
    for (const event of result.events ?? []) this.#tell(event);
    const told =
      'error' in result
        ? { status: 'error' as const, error: result.error }
        : { status: 'ok' as const, outcome: result.outcome };
    this.#tell({ type: 'agent.toolReturned', payload: { ...call, ...told, durationMs } });
    return formatToolResult(toolName, 'error' in result ? `Error: ${result.error.message}` : result.outcome);
  }

  /** Every call returns in the log: with an error, where the node fails for good because of it. */
  async #perform(call: Call, args: JsonObject): Promise<ToolResult> {
    const { agentId, toolName: name } = call;
    try {
      return await this.#context.effects.tool({
        agentId,
        name,
        arguments: args,
        run: (child) => this.#runChild(child),
      });
    } catch (error) {
      if (isFinal(error, this.#context)) {
        const { code, message } = error.error;
        this.#tell({ type: 'agent.toolReturned', payload: { ...call, status: 'error', error: { code, message } } });
      }
      throw error;
    }
  }

  #callFacts(toolName: string, args: JsonObject) {
    const { principal } = this.#context.owner;
    const transport = this.#assignment.resolved.tools.find(({ name }) => name === toolName)?.transport;
    return {
      inputs: args,
      argsHash: sha256Hex(canonicalJson(redactValue(args))),
      ...(principal === undefined ? {} : { principal }),
      ...(transport === undefined ? {} : { transport }),
    };
  }

  /** The result of the child run of this call. While it runs, the node is suspended; it starts over afterwards. */
  async #runChild(request: ChildRequest): Promise<ChildResult> {
    const child = this.#context.children[this.#childrenUsed];
    if (!child) throw new Awaiting([request]);
    if (!isOver(child)) throw new Awaiting([]);
    return this.#context.childResult(child.runId);
  }

  /** The outcome of the node, or undefined if the model has to correct its answer. */
  async #conclude(answer: ModelAnswer, steps: number): Promise<Outcome | undefined> {
    const { rule } = this.#assignment;
    const decision = await readDecision(answer.content, rule, this.#context.schemas);
    if ('problem' in decision) return this.#sendBack(answer, decision.problem);
    this.#reason(decision.reasoning);
    this.#tell({
      type: 'agent.decided',
      payload: {
        agentId: this.#assignment.agentId,
        decision: decision.value,
        ...(decision.confidence === undefined ? {} : { confidence: decision.confidence }),
      },
    });
    const threshold = this.#threshold();
    if (decision.confidence !== undefined && decision.confidence < threshold) {
      return this.#escalate(decision, decision.confidence, threshold, { answer, steps });
    }
    this.#complete('completed', decision);
    return { done: { outputs: this.#outputs(decision.value, decision, { answer, steps }) } };
  }

  /** The agent sent an envelope instead of a decision. */
  #closeWith(envelope: SentEnvelope, { answer, steps }: End): Outcome {
    this.#tell({ type: 'agent.invocation.completed', payload: { ...this.#bracket, outcome: 'completed' } });
    return { done: { outputs: { envelope, ...this.#facts({ answer, steps }) } } };
  }

  #sendBack({ content }: ModelAnswer, problem: string): undefined {
    if (++this.#corrections > CORRECTIONS_MAX) {
      throw failure('handoff_return_schema_violation', `The agent's result does not match its schema: ${problem}`);
    }
    const correction = `The answer does not fit: ${problem} Answer again with JSON alone that fits.`;
    this.#messages.push({ role: 'assistant', content }, { role: 'user', content: correction });
  }

  /** Asks a person about a decision below the confidence threshold; with the answer, completes or fails. */
  #escalate(decision: Decision, observed: number, threshold: number, end: End): Outcome {
    const { agentId, rule } = this.#assignment;
    this.#complete('escalated', decision);
    const { answer } = this.#mailbox ?? this.#context;
    if (!answer) {
      const data = { agentId, threshold, observed, decision: decision.value };
      return { interrupt: { kind: 'low-confidence', data, resumeSchema: resumeSchema(rule) } };
    }
    const ruling = answer.value as { readonly action?: string; readonly decision?: unknown };
    const value = ruling.action === undefined ? ruling.decision : decision.value;
    const { action = 'decide' } = ruling;
    const outputs = { ...this.#outputs(value, decision, end), action };
    if (action === 'reject' && !this.#context.routes(outputs)) {
      throw failure('approval_rejected', 'A person rejected the decision of the agent.');
    }
    return { done: { outputs } };
  }

  #threshold(): number {
    const { agent } = this.#assignment.resolved;
    const { escalationThreshold } = this.#context.configurable;
    return escalationThreshold ?? agent?.manifest.confidence?.defaultThreshold ?? CONFIDENCE_THRESHOLD;
  }

  #outputs(result: unknown, { confidence }: Decision, end: End): JsonObject {
    return { result, ...(confidence === undefined ? {} : { confidence }), ...this.#facts(end) };
  }

  #facts({ answer, steps }: End): JsonObject {
    const sum = (of: (usage: ProviderUsage) => number): number =>
      this.#usage.reduce((total, one) => total + of(one), 0);
    const inputTokens = sum((usage) => usage.inputTokens);
    const outputTokens = sum((usage) => usage.outputTokens);
    return {
      finalMessage: answer.content,
      steps,
      toolCalls: this.#called,
      usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens },
    };
  }

  get #bracket(): { readonly invocationId: string; readonly agentId: string } {
    return { invocationId: this.#id, agentId: this.#assignment.agentId };
  }

  #complete(outcome: 'completed' | 'escalated', { confidence }: Decision): void {
    this.#tell({
      type: 'agent.invocation.completed',
      payload: {
        ...this.#bracket,
        outcome,
        ...(this.#assignment.rule ? { schemaValidated: true } : {}),
        ...(confidence === undefined ? {} : { confidence }),
      },
    });
  }

  #reason(text: string | undefined): void {
    const event = reasoned(this.#assignment.agentId, text, this.#context.configurable.reasoningVerbosity);
    if (event) this.#tell(event);
  }

  #tell(step: NewEvent): void {
    this.#context.emitStep({ ...step, nodeId: this.#context.node.id });
  }
}

interface Call {
  readonly agentId: string;
  readonly toolName: string;
  readonly callId: string;
}

interface End {
  readonly answer: ModelAnswer;
  readonly steps: number;
}

/** The same for every attempt of the node; a loop that visits the node again gets another. */
export function invocationId({ runId, node, visit }: NodeContext): string {
  return `${runId}:${node.id}:${visit}`;
}

/** The schema of the agent's result: the one of its pack, else the node's `outputSchema`. */
export function ruleOf(agent: Agent | null, { outputSchema }: JsonObject): SchemaRule | undefined {
  const schema = agent?.returnSchema ?? outputSchema;
  return isObject(schema) ? { schema } : undefined;
}

/** The schema of a person's answer: accept, reject, or another decision. */
function resumeSchema(rule: SchemaRule | undefined): JsonObject {
  return {
    type: 'object',
    oneOf: [
      {
        required: ['action'],
        properties: { action: { enum: ['accept', 'reject'] }, reason: { type: 'string' } },
        additionalProperties: false,
      },
      { required: ['decision'], properties: { decision: rule?.schema ?? true }, additionalProperties: false },
    ],
  };
}

function callsIn({ end }: ModelAnswer): readonly ToolCall[] {
  return (end.toolCalls ?? []).flatMap((call, index) => {
    if (!isObject(call) || typeof call.name !== 'string') return [];
    return [
      { id: typeof call.id === 'string' ? call.id : `call-${index}`, name: call.name, arguments: call.arguments },
    ];
  });
}

function failure(code: string, message: string): NodeFailure {
  return new NodeFailure({ code, message, retryable: false });
}

/** Thrown when the invocation has to wait for a child run: one that already runs, or `children` to be started. */
export class Awaiting extends Error {
  override readonly name = 'Awaiting';
  readonly children: readonly ChildRequest[];

  constructor(children: readonly ChildRequest[]) {
    super('waiting for a child run');
    this.children = children;
  }
}
