import type { OpenInterrupt } from '../../../engine/run/run.ts';
import type { InterruptView } from '../../../protocol/people/interrupts.ts';
import type { TokenClaims } from './tokens.ts';

/** An open interrupt as the holder of a token sees it; for them it expires with the token, which may be earlier. */
export function viewOf(open: OpenInterrupt, { runId, nodeId, expiresAt }: TokenClaims): InterruptView {
  const { kind, key, data, resumeSchema, interruptId, requestedAt } = open;
  return {
    kind,
    key,
    data,
    ...(resumeSchema ? { resumeSchema } : {}),
    ...(open.expiresAt === undefined ? {} : { timeoutMs: open.expiresAt - requestedAt }),
    runId,
    nodeId,
    interruptId,
    requestedAt: new Date(requestedAt).toISOString(),
    expiresAt: new Date(expiresAt).toISOString(),
  };
}
