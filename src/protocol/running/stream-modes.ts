import { EVENTS } from './events.ts';

/** Views of the event stream that a client can choose. */
export const STREAM_MODES = ['updates', 'values', 'messages', 'debug'] as const;
/** One of STREAM_MODES. */
export type StreamMode = (typeof STREAM_MODES)[number];

/** Whether a stream in `mode` includes events of `type`; unknown types are included only in `debug`. */
export function modeIncludes(mode: StreamMode, type: string): boolean {
  if (mode === 'debug') return true;
  const tier = (EVENTS as Record<string, { readonly tier: string }>)[type]?.tier;
  return mode === 'messages' ? tier === 'messages' : tier === 'updates';
}
