import type { EnvelopeOrigin, InterruptRequest } from '../../../engine/people/interrupts.ts';
import { type AiEnvelope, ENVELOPE_KINDS, UNIVERSAL_KINDS } from '../../../protocol/ai/envelopes.ts';
import { isObject, type JsonObject, own } from '../../../protocol/format/json.ts';
import type { EventPayload } from '../../../protocol/running/events.ts';
import type { ModelAnswer } from '../../../runtime/ask-model.ts';
import type { ModelMessage } from '../../../runtime/effects/model.ts';
import type { EnvelopeKind } from '../../../runtime/effects/seams.ts';
import type { NodeContext } from '../../../runtime/node-type.ts';
import { redactText, redactValue } from '../../../system/redaction.ts';
import {
  checkPayload,
  type Found,
  findEnvelopes,
  hasDrifted,
  type IsAnswer,
  isInContract,
  isUniversal,
  parseShape,
  type Refusal,
  refuse,
} from './checks.ts';
import { instructions } from './instructions.ts';
import { LIMITS } from './limits.ts';
import { finalFailure, type Rounds } from './rounds.ts';

/** The part of an accepted envelope that its node outputs. */
export type SentEnvelope = Pick<AiEnvelope, 'type' | 'envelopeId' | 'correlationId' | 'payload'>;

/** What follows from the envelopes in one answer. */
export type Reception =
  /** A person has to answer first. */
  | { readonly interrupt: InterruptRequest }
  /** It is what the model has to say: its report of an error, or an envelope of a kind that the operator configured. */
  | { readonly envelope: SentEnvelope }
  /** The conversation to go on with. */
  | { readonly messages: readonly ModelMessage[] };

/** What becomes of one envelope: an interrupt, the end of the conversation, or words to the model. */
type Routed =
  | { readonly interrupt: InterruptRequest }
  | { readonly envelope: SentEnvelope }
  | { readonly reply: string }
  | { readonly reply: string; readonly instruction: string };

const CAUSE_CHARACTERS_MAX = 128;
/** Untrusted content in a prompt ends with this; see `asSegment`. */
const UNTRUSTED_END = '</UNTRUSTED>';

/**
 * Accepts the envelopes that the model of one node sends. It holds no state across calls: a node that is called again
 * reads the same answers from the ledger, and each event is recorded once.
 */
export class Mailbox {
  readonly #context: NodeContext;
  readonly #rounds: Rounds;
  readonly #isAnswer: IsAnswer | undefined;
  /** What was accepted, by correlation id. */
  readonly #accepted = new Map<string, { readonly type: string; readonly routed: Routed }>();
  #clarifications = 0;
  #schemaRequests = 0;
  #inTurn = 0;
  #isNewTurn = false;
  #answersUsed = 0;

  constructor(context: NodeContext, rounds: Rounds, isAnswer?: IsAnswer) {
    this.#context = context;
    this.#rounds = rounds;
    this.#isAnswer = isAnswer;
  }

  /** The answer to an interrupt of the node itself; answers to clarifications are used here. */
  get answer(): NodeContext['answer'] {
    const { answer, answers } = this.#context;
    if (this.#answersUsed === 0) return answer;
    return answers.length > this.#answersUsed ? answer : undefined;
  }

  /** Adds what the model of a node with a contract must know in order to send envelopes. */
  brief(messages: readonly ModelMessage[]): readonly ModelMessage[] {
    const { envelopeContract, id } = this.#context.node;
    return envelopeContract ? withInstruction(messages, instructions(envelopeContract, id)) : messages;
  }

  /**
   * Accepts what is in an answer; undefined if there is no envelope. The node fails if an envelope breaks its contract
   * or a limit, or is refused too often.
   */
  async receive(answer: ModelAnswer, messages: readonly ModelMessage[]): Promise<Reception | undefined> {
    const { content, end, result } = answer;
    if (result.refusal || end.finishReason === 'length' || (end.toolCalls ?? []).length > 0) return undefined;
    const found = await findEnvelopes(content, this.#isAnswer);
    if (found.length === 0) return undefined;
    this.#recordRecovery(found);
    if (this.#isNewTurn) this.#inTurn = 0;
    this.#isNewTurn = false;
    return this.#receiveAll(found, content, messages);
  }

  async #receiveAll(found: readonly Found[], content: string, before: readonly ModelMessage[]): Promise<Reception> {
    const replies: string[] = [];
    let messages = before;
    let last: SentEnvelope | undefined;
    for (const { value } of found) {
      const routed = await this.#accept(value, before);
      if ('refused' in routed) {
        replies.push(this.#sendBack(routed));
        last = undefined;
        break;
      }
      this.#rounds.startOver();
      if ('interrupt' in routed) return routed;
      if ('envelope' in routed) last = routed.envelope;
      else replies.push(routed.reply);
      if ('instruction' in routed) messages = withInstruction(messages, routed.instruction);
    }
    if (last) return { envelope: last };
    return {
      messages: [...messages, { role: 'assistant', content }, { role: 'user', content: replies.join('\n') }],
    };
  }

  /** The words hold nothing of the envelope: what the model said is not repeated as an instruction. */
  #sendBack({ refused: code, problem }: Refusal): string {
    this.#rounds.again({ reason: 'schema-violation', problem, code });
    return `An envelope was refused (${code}): ${problem} Put it right and send it again.`;
  }

  /** The checks are in the order that the protocol prescribes. */
  async #accept(value: unknown, messages: readonly ModelMessage[]): Promise<Routed | Refusal> {
    const envelope = parseShape(value);
    if ('refused' in envelope) return envelope;
    const kind = await this.#kindOf(envelope.type);
    if (kind === null) return refuse('unknown_envelope_kind', `Its type is not one of those that this host knows.`);
    const refusal = await checkPayload(envelope, kind, this.#context.schemas);
    if (refusal) return refusal;
    const masked = redactValue(envelope);
    const origin = originOf(masked, messages);
    if (!isInContract(envelope.type, this.#context.node.envelopeContract)) return this.#violation(masked, origin);
    this.#countInTurn(masked, origin);
    const earlier = this.#accepted.get(masked.correlationId);
    if (earlier && earlier.type !== masked.type) {
      return refuse('envelope_correlation_conflict', 'Its correlationId belongs to an envelope of another type.');
    }
    // Sent again: it has the outcome that it had, and nothing more is recorded.
    if (earlier) return earlier.routed;
    if (hasDrifted(envelope, kind)) this.#recordDrift(masked, origin);
    const routed = await this.#route(masked, origin);
    if (!('refused' in routed)) this.#accepted.set(masked.correlationId, { type: masked.type, routed });
    return routed;
  }

  /** Undefined for a universal kind, null for one that this host does not know. */
  async #kindOf(type: string): Promise<EnvelopeKind | undefined | null> {
    if (isUniversal(type)) return undefined;
    return (await this.#context.effects.envelopeKind({ type })).kind;
  }

  async #route(envelope: AiEnvelope, origin: EnvelopeOrigin): Promise<Routed | Refusal> {
    const { type, envelopeId, correlationId } = envelope;
    const payload = envelope.payload as JsonObject;
    switch (type) {
      case 'clarification.request':
        return this.#clarify(envelope.payload as Clarification, envelope, origin);
      case 'schema.request':
        return this.#tellSchema(envelope, payload.envelopeType as string, origin);
      case 'schema.response':
        this.#log(envelope, origin, { level: 'debug', message: 'The model has read a schema.' });
        return { reply: 'Go on.' };
      case 'error': {
        const { code, message, details } = payload;
        const fields = { code, ...(details === undefined ? {} : { details }) };
        this.#log(envelope, origin, { level: 'error', message: message as string, fields });
        return { envelope: { type, envelopeId, correlationId, payload } };
      }
      default:
        this.#log(envelope, origin, { level: 'debug', message: 'The model has sent an envelope.' });
        return { envelope: { type, envelopeId, correlationId, payload: envelope.payload } };
    }
  }

  /** Asks a person, once. With the answer, the conversation goes on. */
  #clarify({ questions, contextType }: Clarification, envelope: AiEnvelope, origin: EnvelopeOrigin): Routed {
    if (this.#clarifications >= LIMITS.clarificationRounds) {
      throw this.#breach('clarification', 'clarificationRounds', this.#clarifications + 1, envelope, origin);
    }
    this.#clarifications++;
    const answers = this.#nextAnswers(questions.map(({ id }) => id));
    if (answers) {
      this.#isNewTurn = true;
      return { reply: `These are the answers to your questions, by their ids: ${JSON.stringify(answers)}` };
    }
    const asked = questions.map(({ id, question, schema }) => ({ id, question, ...(schema ? { schema } : {}) }));
    const data = { questions: asked, ...(contextType === undefined ? {} : { contextType }) };
    return { interrupt: { kind: 'clarification', data, from: origin } };
  }

  /**
   * The next answers to these questions. Others are skipped: a branch keeps the answers of its source, but its model
   * may ask something else.
   */
  #nextAnswers(ids: readonly string[]): JsonObject | undefined {
    const given = this.#context.answers;
    for (let at = this.#answersUsed; at < given.length; at++) {
      const value = given[at];
      const answers = isObject(value) && isObject(value.answers) ? value.answers : undefined;
      if (!answers || !ids.every((id) => own(answers, id) !== undefined)) continue;
      this.#answersUsed = at + 1;
      return answers;
    }
    return undefined;
  }

  async #tellSchema(envelope: AiEnvelope, wanted: string, origin: EnvelopeOrigin): Promise<Routed | Refusal> {
    const kind = await this.#kindOf(wanted);
    if (kind === null) return refuse('unknown_envelope_kind', 'This host has no schema of the requested type.');
    if (this.#schemaRequests >= LIMITS.schemaRounds) {
      throw this.#breach('schema', 'schemaRounds', this.#schemaRequests + 1, envelope, origin);
    }
    this.#schemaRequests++;
    this.#log(envelope, origin, {
      level: 'debug',
      message: 'The model has asked for a schema.',
      fields: { requestedType: wanted },
    });
    const schema = isUniversal(wanted) ? ENVELOPE_KINDS[wanted] : kind!.schema;
    return {
      reply: 'You have been given the schema. Go on.',
      instruction: `The payload of an envelope of type ${wanted} must fit this JSON Schema: ${JSON.stringify(schema)}`,
    };
  }

  #violation(envelope: AiEnvelope, origin: EnvelopeOrigin): Routed {
    const { accepts, refusalMode } = this.#context.node.envelopeContract!;
    const acceptedTypes = [...UNIVERSAL_KINDS, ...accepts];
    const message = 'The contract of this node does not accept envelopes of this type.';
    if (refusalMode !== 'discard-and-warn') {
      throw finalFailure('envelope_contract_violation', message, { refusedType: envelope.type, acceptedTypes });
    }
    this.#countInTurn(envelope, origin);
    this.#log(envelope, origin, { level: 'warn', message, fields: { acceptedTypes } });
    return { reply: `Your envelope was discarded. This step accepts ${acceptedTypes.join(', ')}. Go on.` };
  }

  #countInTurn(envelope: AiEnvelope, origin: EnvelopeOrigin): void {
    if (this.#inTurn >= LIMITS.envelopesPerTurn) {
      throw this.#breach('envelopes', 'envelopesPerTurn', this.#inTurn + 1, envelope, origin);
    }
    this.#inTurn++;
  }

  #breach(
    kind: EventPayload<'cap.breached'>['kind'],
    name: keyof typeof LIMITS,
    observed: number,
    { type }: AiEnvelope,
    origin: EnvelopeOrigin,
  ) {
    const { node, emitStep } = this.#context;
    const limit = LIMITS[name];
    emitStep({
      type: 'cap.breached',
      nodeId: node.id,
      payload: { kind, limit, observed, nodeId: node.id },
      ...origin,
    });
    const message = `The limit ${name} is ${limit}, and this envelope would be number ${observed}.`;
    return finalFailure('cap_breached', message, { limit: name, value: limit, observed, type });
  }

  #recordRecovery(found: readonly Found[]): void {
    const { node, emitStep } = this.#context;
    const offsets = new Set(found.flatMap(({ byteOffset }) => byteOffset ?? []));
    for (const byteOffset of offsets) {
      const payload = { nodeId: node.id, path: 'markdown-fence' as const, byteOffset };
      emitStep({ type: 'envelope.recovery.applied', nodeId: node.id, payload });
    }
  }

  #recordDrift(envelope: AiEnvelope, origin: EnvelopeOrigin): void {
    this.#log(envelope, origin, {
      level: 'warn',
      message: 'The envelope has an older schema version than the one it was checked with.',
      fields: { code: 'envelope_schema_version_drift', schemaVersion: envelope.schemaVersion ?? 0 },
    });
  }

  #log(
    { type, envelopeId, correlationId }: AiEnvelope,
    origin: EnvelopeOrigin,
    { level, message, fields = {} }: Pick<EventPayload<'log.appended'>, 'level' | 'message' | 'fields'>,
  ): void {
    const { id: nodeId } = this.#context.node;
    // The fold counts log entries with `envelopeType` as steps, so that each is recorded once.
    const facts = { envelopeType: type, envelopeId, correlationId, ...fields };
    this.#context.emitStep({
      type: 'log.appended',
      nodeId,
      payload: { level, message, nodeId, fields: facts },
      ...origin,
    });
  }
}

interface Clarification {
  readonly questions: readonly { readonly id: string; readonly question: string; readonly schema?: JsonObject }[];
  readonly contextType?: string;
}

/** Untrusted content in the conversation makes what the model says untrusted, whatever the envelope claims. */
function originOf({ correlationId, meta }: AiEnvelope, messages: readonly ModelMessage[]): EnvelopeOrigin {
  const isTainted = messages.some(({ content }) => content.includes(UNTRUSTED_END));
  const contentTrust = isTainted ? 'untrusted' : meta.contentTrust;
  return {
    causationId: redactText(correlationId).slice(0, CAUSE_CHARACTERS_MAX).toWellFormed(),
    ...(contentTrust === undefined ? {} : { contentTrust }),
  };
}

/** Adds to what the model is told before the conversation. */
function withInstruction(messages: readonly ModelMessage[], content: string): readonly ModelMessage[] {
  const firstWord = messages.findIndex(({ role }) => role !== 'system');
  const at = firstWord < 0 ? messages.length : firstWord;
  return [...messages.slice(0, at), { role: 'system', content }, ...messages.slice(at)];
}
