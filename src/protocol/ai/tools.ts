import { type Static, Type } from 'typebox';
import { TOOL_SOURCES } from '../format/choices.ts';
import { AnyObject, Closed, NonEmpty, OneOf } from '../format/schema.ts';

const Optional = Type.Optional;

/** A tool as the catalogue shows it, to those who decide whether an agent may use it. */
export const ToolDescriptor = Closed(
  {
    toolId: Type.String({ minLength: 1, description: '`<scope>:<tool>`, as the allow-lists of agents have it' }),
    source: OneOf(TOOL_SOURCES),
    title: Optional(NonEmpty),
    description: Optional(NonEmpty),
    inputSchema: AnyObject,
    safetyTier: OneOf(['pure', 'read', 'write', 'exec'], { description: 'What a call does to data' }),
    egress: OneOf(['none', 'safe-fetch', 'host-mediated', 'host-owned'], { description: 'How a call leaves the host' }),
    replayPolicy: OneOf(['deterministic', 'idempotent', 'non-deterministic']),
  },
  { $id: 'ToolDescriptor' },
);
export type ToolDescriptor = Static<typeof ToolDescriptor>;

export const ToolList = Closed({ tools: Type.Array(ToolDescriptor) }, { $id: 'ToolList' });
export type ToolList = Static<typeof ToolList>;
