import { describe, expect, it } from 'vitest';
import { compact } from './compact.ts';

const TOOL = {
  toolId: 'a:b',
  source: 'mcp',
  safetyTier: 'write',
  title: 'Do',
  egress: 'none',
  replayPolicy: 'idempotent',
} as const;

describe('the compact view of a tool', () => {
  it('keeps what a model needs, and widens combinators', () => {
    const inputSchema = {
      $defs: { x: { type: 'string' } },
      oneOf: [{ required: ['a'] }],
      properties: {
        oneOf: { type: 'string', default: { anyOf: 1 } },
        list: { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'number' }], minLength: 1 } },
        ref: { $ref: '#/$defs/x', description: 'Text' },
      },
      required: ['oneOf'],
      additionalProperties: { not: {} },
    };
    expect(compact({ ...TOOL, inputSchema })).toEqual({
      toolId: 'a:b',
      source: 'mcp',
      safetyTier: 'write',
      title: 'Do',
      inputSchema: {
        type: 'object',
        properties: {
          oneOf: { type: 'string', default: { anyOf: 1 } },
          list: { type: 'array', items: { minLength: 1 } },
          ref: { description: 'Text' },
        },
        required: ['oneOf'],
        additionalProperties: {},
      },
    });
  });

  it('is that of an object, whatever the tool says', () => {
    expect(compact({ ...TOOL, inputSchema: {} }).inputSchema).toEqual({ type: 'object' });
  });
});
