import { type Static, Type } from 'typebox';
import { TOOL_SOURCES } from '../format/choices.ts';
import { AnyObject, Closed, NonEmpty, OneOf } from '../format/schema.ts';

const Optional = Type.Optional;

/** A tool as listed in the catalogue, with what one needs to decide whether an agent may use it. */
export const ToolDescriptor = Closed(
  {
    toolId: Type.String({ minLength: 1, description: '`<scope>:<tool>`, as in the allow-lists of agents' }),
    source: OneOf(TOOL_SOURCES),
    title: Optional(NonEmpty),
    description: Optional(NonEmpty),
    inputSchema: AnyObject,
    safetyTier: OneOf(['pure', 'read', 'write', 'exec'], { description: 'What a call may do to data' }),
    egress: Optional(
      OneOf(['none', 'safe-fetch', 'host-mediated', 'host-owned'], { description: 'How a call reaches the network' }),
    ),
    replayPolicy: Optional(OneOf(['deterministic', 'idempotent', 'non-deterministic'])),
  },
  { $id: 'ToolDescriptor' },
);
/** A catalogue entry; `inputSchema` is the JSON Schema of the arguments. */
export type ToolDescriptor = Static<typeof ToolDescriptor>;

/** Views of the catalogue: everything, or what a model is told of a tool. */
export const TOOL_VIEWS = ['standard', 'compact'] as const;
/** One of TOOL_VIEWS. */
export type ToolView = (typeof TOOL_VIEWS)[number];

/** All tools that the caller's agents could use. */
export const ToolList = Closed({ tools: Type.Array(ToolDescriptor) }, { $id: 'ToolList' });
/** The whole catalogue; it is not paginated. */
export type ToolList = Static<typeof ToolList>;
