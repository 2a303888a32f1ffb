import { describe, expect, it } from 'vitest';
import type { RunEvent } from '../client/index.ts';
import { eventDetail } from './event-details.ts';

const said = (type: string, payload: object): string => eventDetail({ type, payload } as unknown as RunEvent);

describe('the details of an event', () => {
  const error = { code: 'away', message: 'The service is away.' };

  it.each([
    ['log.appended', { level: 'warn', message: 'slow', fields: { ms: 900 } }, 'warn: slow (ms=900)'],
    ['output.chunk', { nodeId: 'a', chunk: 'Hel', isLast: false }, '"Hel"'],
    ['node.skipped', { reason: 'edge_condition_false' }, 'the condition of its edge is false'],
    ['node.skipped', { reason: 'of_a_newer_host' }, 'of_a_newer_host'],
    ['node.started', { attempt: 0 }, ''],
    ['node.started', { attempt: 1 }, 'attempt 2'],
    ['node.failed', { error, attempts: 3 }, 'The service is away. (away), after 3 attempts'],
    [
      'node.retried',
      { attempt: 1, delayMs: 2_000, lastError: error },
      'attempt 1 failed: The service is away. (away); attempt 2 in 2 s',
    ],
    ['run.failed', { error, failedNodeId: 'fetch' }, 'at fetch: The service is away. (away)'],
    ['run.cancelled', { reason: 'wrong inputs', cancelledBy: 'ada' }, 'by ada: wrong inputs'],
    ['approval.rejected', { principal: 'ada', reason: 'too expensive' }, 'by ada: too expensive'],
    [
      'interrupt.resolved',
      { resumeValue: { action: 'reject', reason: 'too expensive' }, resolvedBy: 'ada' },
      'reject by ada: too expensive',
    ],
    ['variable.changed', { name: 'text', next: 'x'.repeat(100) }, `text = ${'x'.repeat(80)}…`],
    ['capstan.of.a.newer.host', { anything: 1 }, ''],
    ['toString', {}, ''],
  ])('of type %s are said in words: %o', (type, payload, words) => {
    expect(said(type, payload)).toBe(words);
  });
});
