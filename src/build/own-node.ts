import { Type } from 'typebox';
import type { ConfigProblem } from '../engine/definition/check.ts';
import type { InterruptRequest } from '../engine/people/interrupts.ts';
import { answerIn, questionOf } from '../engine/people/questions.ts';
import { isOver } from '../engine/run/run.ts';
import { isObject, type JsonObject } from '../protocol/format/json.ts';
import { declaredPorts } from '../runtime/declared-ports.ts';
import type { StepCall } from '../runtime/effects/seams.ts';
import { type NodeContext, NodeFailure, type NodeType, type Outcome } from '../runtime/node-type.ts';
import type { ChildOutcome, NodeCall, OwnNode, PureCall } from './define-node.ts';
import { checkOf, isStandard, jsonSchemaOf, type StandardSchema, type ValueCheck } from './value-schema.ts';

/** Makes a node type of the host from a node that was defined in code. */
export function nodeTypeOf(node: OwnNode): NodeType {
  const [checkConfig, checkInputs, checkOutputs] = [node.config, node.inputs, node.outputs].map(checkOf);
  const { config } = node;
  return {
    typeId: node.typeId,
    description: node.description,
    role: node.safety === 'pure' ? 'pure' : 'side-effect',
    fansOut: node.safety !== 'pure',
    ...(config === undefined ? {} : { config: isStandard(config) ? ANY_CONFIG : jsonSchemaOf(config) }),
    ...(config !== undefined && isStandard(config) ? { check: (value) => configProblems(config, value) } : {}),
    ...declaredPorts({ inputs: jsonSchemaOf(node.inputs), outputs: jsonSchemaOf(node.outputs) }),
    ...(node.tool
      ? { tool: { description: node.description, safety: node.safety, inputs: jsonSchemaOf(node.inputs) } }
      : {}),
    run: (context) =>
      after(checkConfig!(context.config), (settings) =>
        after(checkInputs!(context.inputs), (inputs) => {
          if ('problem' in settings) return misfit('config', settings.problem);
          if ('problem' in inputs) return misfit('inputs', inputs.problem);
          return withTimeout(context, node, (call) => {
            const given = { ...call, config: settings.value, inputs: inputs.value };
            return node.safety === 'pure'
              ? callPure(node, given, checkOutputs!)
              : callOwn(node, given, checkOutputs!, context);
          });
        }),
      ),
  };
}

/**
 * Goes on with a value, at once if it is there. A node whose checks and code answer at once ends at once, as built-in ones
 * do: a run does not commit that it has begun before it commits how it ended.
 */
function after<T, R>(value: T | PromiseLike<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return isPromise(value) ? Promise.resolve(value).then(next) : next(value);
}

function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as Partial<PromiseLike<T>> | null | undefined)?.then === 'function';
}

const ANY_CONFIG = Type.Object({}, { additionalProperties: true });

/** Only checks that answer at once count at registration; the others are made when the node is called. */
function configProblems(schema: StandardSchema, value: JsonObject): readonly ConfigProblem[] {
  const result = schema['~standard'].validate(value);
  if (result instanceof Promise) return [];
  return (result.issues ?? []).map(({ message, path = [] }) => ({
    path: path.map((part) => `.${String(typeof part === 'object' ? part.key : part)}`).join(''),
    message,
  }));
}

function misfit(what: string, problem: string): Outcome {
  const message = `The ${what} of the node do not fit: ${problem}.`;
  return { failed: { code: 'validation_error', message, retryable: false } };
}

type Call = Omit<PureCall<unknown, unknown>, 'config' | 'inputs'>;

/** Aborts the code and fails the attempt when it takes longer than the node allows. */
function withTimeout(
  context: NodeContext,
  { typeId, timeoutMs }: OwnNode,
  run: (call: Call) => Outcome | Promise<Outcome>,
): Outcome | Promise<Outcome> {
  const { runId, node, owner, attempt: number, now } = context;
  const call = { runId, nodeId: node.id, tenant: owner.tenant, attempt: number, now };
  if (timeoutMs === undefined) return run({ ...call, signal: context.signal });
  const [tooLate, ended] = [new AbortController(), new AbortController()];
  const attempt = run({ ...call, signal: AbortSignal.any([context.signal, tooLate.signal]) });
  if (!isPromise(attempt)) return attempt;
  const timer = context.sleep(timeoutMs, ended.signal).then(
    (): Outcome => {
      tooLate.abort();
      const message = `${typeId} took longer than ${timeoutMs} ms.`;
      return { failed: { code: 'node_timeout', message, retryable: true } };
    },
    // It is over already, or the run no longer waits for it.
    () => new Promise<never>(() => {}),
  );
  // Without an end, the timers of attempts that are over would pile up for as long as each might have taken.
  return Promise.race([attempt, timer]).finally(() => ended.abort());
}

/** Calls code that waits for nothing but itself. */
function callPure(
  node: OwnNode,
  call: PureCall<unknown, unknown>,
  checkOutputs: ValueCheck,
): Outcome | Promise<Outcome> {
  try {
    const returned = after(node.run(call as never), (value) => checkedOutcome(node, checkOutputs, value));
    return isPromise(returned) ? returned.catch((error) => Promise.reject(recognised(error))) : returned;
  } catch (error) {
    throw recognised(error);
  }
}

function checkedOutcome(node: OwnNode, checkOutputs: ValueCheck, value: unknown): Outcome | Promise<Outcome> {
  return after(checkOutputs(value ?? {}), (outputs): Outcome => {
    if ('problem' in outputs) return wrongOutputs(node, outputs.problem);
    return isObject(outputs.value)
      ? { done: { outputs: outputs.value } }
      : wrongOutputs(node, 'they must be an object');
  });
}

/** Calls the code until it returns or has to wait. */
async function callOwn(
  node: OwnNode,
  call: PureCall<unknown, unknown>,
  checkOutputs: ValueCheck,
  context: NodeContext,
): Promise<Outcome> {
  const waiting = new Waiting(context);
  const given = fullCall(call, waiting, context);
  const returned = (async () => node.run(given as never))().catch((error) => Promise.reject(recognised(error)));
  const outcome = await Promise.race([
    returned.then((value) => checkedOutcome(node, checkOutputs, value)),
    waiting.outcome,
  ]);
  // An effect that is under way is let finish, or the next call would attempt it a second time.
  await waiting.effectsEnded();
  return outcome;
}

function wrongOutputs({ typeId }: OwnNode, problem: string): Outcome {
  const message = `${typeId} returned outputs that do not fit its schema: ${problem}.`;
  return { failed: { code: 'invalid_outputs', message, retryable: false } };
}

function fullCall(
  call: PureCall<unknown, unknown>,
  waiting: Waiting,
  { emitShown, node, runId }: NodeContext,
): NodeCall<unknown, unknown> {
  const nodeId = node.id;
  return {
    ...call,
    effect: (name, perform) => waiting.effect(name, (effect) => perform({ ...effect, signal: call.signal })),
    ask: async (question) => answerIn(await waiting.answer(questionOf(question))),
    waitForEvent: (eventType, correlation, { timeoutMs } = {}) =>
      waiting.answer({ kind: 'external-event', data: { eventType, correlation }, timeoutMs }),
    sleep: async (ms) => waiting.until(await waiting.effect('sleep', () => call.now() + ms)),
    sleepUntil: (time) => waiting.until(time),
    runWorkflow: (workflowId, inputs = {}) => waiting.child(workflowId, inputs),
    stream: (chunk) => emitShown({ type: 'output.chunk', nodeId, payload: { nodeId, runId, chunk, isLast: false } }),
    log: (message, fields) =>
      emitShown({
        type: 'log.appended',
        nodeId,
        payload: { level: 'info', message, nodeId, ...(fields ? { fields } : {}) },
      }),
  };
}

/** A failure as this host knows it, also if `fatal` or `retryable` of another copy of this package made it. */
function recognised(error: unknown): unknown {
  const isForeign = error instanceof Error && error.name === 'NodeFailure' && !(error instanceof NodeFailure);
  return isForeign ? new NodeFailure((error as NodeFailure).error) : error;
}

/**
 * Everything that a node waits for. What the record has is given at once. Otherwise the call ends with what it waits
 * for, and the code's promise stays open forever: it is called again from the start.
 */
class Waiting {
  readonly #context: NodeContext;
  readonly #suspended = Promise.withResolvers<Outcome>();
  readonly #effects = new Set<Promise<unknown>>();
  #answers = 0;
  #children = 0;

  constructor(context: NodeContext) {
    this.#context = context;
  }

  /** Settles when the code has to wait. */
  get outcome(): Promise<Outcome> {
    return this.#suspended.promise;
  }

  async effectsEnded(): Promise<void> {
    await Promise.allSettled(this.#effects);
  }

  effect<T>(name: string, perform: (call: StepCall) => T | Promise<T>): Promise<T> {
    const attempt = async (call: StepCall): Promise<T> => {
      try {
        return await perform(call);
      } catch (error) {
        throw recognised(error);
      }
    };
    const performed = this.#context.effects.step({ name, perform: attempt }) as Promise<T>;
    this.#effects.add(performed);
    return performed.finally(() => this.#effects.delete(performed));
  }

  answer(request: InterruptRequest): Promise<unknown> {
    const { answers } = this.#context;
    const place = this.#answers++;
    return place < answers.length ? Promise.resolve(answers[place]) : this.#suspend({ interrupt: request });
  }

  until(time: number): Promise<void> {
    return this.#context.now() >= time ? Promise.resolve() : this.#suspend({ sleepUntil: time });
  }

  async child(workflowId: string, variables: JsonObject): Promise<ChildOutcome> {
    const child = this.#context.children[this.#children++];
    if (!child) return this.#suspend({ children: [{ workflowId, variables }] });
    if (!isOver(child)) return this.#suspend({ children: [] });
    const { runId, status, variables: ended, outputs = {}, error } = await this.#context.childResult(child.runId);
    return { runId, status, variables: ended, outputs, error };
  }

  #suspend(outcome: Outcome): Promise<never> {
    this.#suspended.resolve(outcome);
    return new Promise(() => {});
  }
}
