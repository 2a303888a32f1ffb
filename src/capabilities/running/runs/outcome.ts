import { isObject } from '../../../protocol/format/json.ts';
import { oneLine } from '../../one-line.ts';

/** The beginning of what came of a run, in one line: its result, its error, or why it was cancelled. */
export function outcomeIn({ type, payload }: { readonly type: string; readonly payload: unknown }): string | undefined {
  if (!isObject(payload)) return undefined;
  const { outputs, error, reason } = payload;
  if (type === 'run.completed') return oneLine(outputs);
  if (type === 'run.failed' && isObject(error)) return oneLine(error.message) ?? oneLine(error.code);
  return type === 'run.cancelled' ? oneLine(reason) : undefined;
}
