import { type Static, Type } from 'typebox';
import { AnyObject, NonEmpty } from '../format/schema.ts';

/** A JSON-RPC message of the Model Context Protocol to this host; the MCP library validates its content. */
export const McpMessage = Type.Object(
  {
    jsonrpc: Type.Literal('2.0'),
    id: Type.Optional(Type.Union([Type.String(), Type.Integer()])),
    method: NonEmpty,
    params: Type.Optional(AnyObject),
  },
  { $id: 'McpMessage' },
);
/** A message with a valid JSON-RPC frame; without an `id` it is a notification and gets no response. */
export type McpMessage = Static<typeof McpMessage>;
