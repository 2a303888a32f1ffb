import type { PortValue, WorkflowDefinition } from '../../src/protocol/running/workflows.ts';

type Variable = WorkflowDefinition['variables'][number];

/** The value of a field, or what is wrong with it. */
interface ReadInput {
  readonly value?: unknown;
  readonly problem?: string;
}

/** A value as the text of a field. */
export function showInput(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'object' ? JSON.stringify(value, null, 2) : String(value);
}

/** Reads a field by the type of its variable. */
export function readInput({ type, required = false, defaultValue }: Variable, given: unknown): ReadInput {
  const text = typeof given === 'string' ? given : '';
  if (text.trim() === '') {
    return required && defaultValue === undefined ? { problem: 'Fill this in.' } : {};
  }
  if (type === 'string') return { value: text };
  if (type === 'boolean') return { value: text === 'true' };
  if (type === 'number') {
    const value = Number(text);
    return Number.isFinite(value) ? { value } : { problem: 'This is not a number.' };
  }
  return readJson(text, type);
}

function readJson(text: string, type: 'object' | 'array'): ReadInput {
  try {
    const value: unknown = JSON.parse(text);
    const isWanted = type === 'array' ? Array.isArray(value) : typeof value === 'object' && value !== null;
    return isWanted ? { value } : { problem: `This is JSON, but not of type ${type}.` };
  } catch (error) {
    return { problem: `This is not JSON: ${error instanceof Error ? error.message : ''}` };
  }
}

/** Where the value of a port comes from, in a few words. */
export function sourceOf(port: PortValue): string {
  if (port.type === 'connection') return `from ${port.nodeId}.${port.outputKey}`;
  if (port.type === 'variable') return `from variables.${port.variableName}`;
  return port.type === 'expression' ? `= ${port.expression}` : 'fixed in the workflow';
}
