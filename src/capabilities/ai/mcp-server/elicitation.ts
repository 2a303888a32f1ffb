import { isObject, type JsonObject } from '../../../protocol/format/json.ts';
import type { InterruptView } from '../../../protocol/people/interrupts.ts';

/** A question that an MCP client asks a person: flat, with simple answers. */
export interface Elicitation {
  readonly message: string;
  readonly requestedSchema: { type: 'object'; properties: Record<string, Simple>; required: string[] };
}

type Simple = { type: 'string' } | { type: 'string'; enum: string[] } | { type: 'number' } | { type: 'boolean' };

type Asked = Pick<InterruptView, 'kind' | 'data'>;

const SIMPLE = ['string', 'number', 'boolean'] as const;

/** The question of an interrupt; undefined if it cannot be asked with flat answers, so that only the inbox shows it. */
export function elicitationOf({ kind, data }: Asked): Elicitation | undefined {
  if (kind === 'approval') return approvalOf(data);
  return kind === 'clarification' ? clarificationOf(data.questions) : undefined;
}

function approvalOf({ title, description, actions }: JsonObject): Elicitation | undefined {
  const offered = Array.isArray(actions) ? actions.filter((action) => action === 'accept' || action === 'reject') : [];
  if (offered.length === 0) return undefined;
  return {
    message: [title, description].filter((text) => typeof text === 'string').join('\n'),
    requestedSchema: schemaOf({ action: { type: 'string', enum: offered } }),
  };
}

function clarificationOf(questions: unknown): Elicitation | undefined {
  const asked = (Array.isArray(questions) ? questions : []).filter(isObject);
  const types = asked.map(({ schema }) => simpleType(schema));
  if (asked.length === 0 || types.includes(undefined)) return undefined;
  return {
    message: asked.map(({ question }) => String(question)).join('\n'),
    requestedSchema: schemaOf(
      Object.fromEntries(asked.map(({ id }, index) => [String(id), { type: types[index]! } as Simple])),
    ),
  };
}

function simpleType(schema: unknown): (typeof SIMPLE)[number] | undefined {
  const { type = 'string' } = isObject(schema) ? schema : {};
  return SIMPLE.find((simple) => simple === type);
}

function schemaOf(properties: Record<string, Simple>): Elicitation['requestedSchema'] {
  return { type: 'object', properties, required: Object.keys(properties) };
}

/** The answer to an interrupt in a client's response; undefined if the person did not answer. */
export function answerFrom({ kind }: Pick<Asked, 'kind'>, response: unknown): JsonObject | undefined {
  const { action, content } = isObject(response) ? response : {};
  const given = isObject(content) ? content : {};
  if (kind === 'approval' && action === 'decline') return { action: 'reject' };
  if (action !== 'accept') return undefined;
  return kind === 'approval' ? { action: given.action } : { answers: given };
}
