import { describe, expect, it } from 'vitest';
import { parseTrace, traceHeaders } from './trace.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN_ID = '00f067aa0ba902b7';
const WELL_FORMED = `00-${TRACE_ID}-${SPAN_ID}-01`;

describe('a trace context', () => {
  it('is read from its headers and written for the next span', () => {
    const context = parseTrace(WELL_FORMED, 'vendor=1');
    expect(context).toEqual({ traceId: TRACE_ID, spanId: SPAN_ID, flags: '01', state: 'vendor=1' });
    expect(traceHeaders(context!, 'a'.repeat(16))).toEqual({
      traceparent: `00-${TRACE_ID}-${'a'.repeat(16)}-01`,
      tracestate: 'vendor=1',
    });
  });

  it('of a later version may have more members', () => {
    expect(parseTrace(`01-${TRACE_ID}-${SPAN_ID}-01-more`)).toMatchObject({ traceId: TRACE_ID });
  });

  it.each([
    undefined,
    '',
    'nonsense',
    [WELL_FORMED],
    WELL_FORMED.toUpperCase(),
    `${WELL_FORMED}-more`,
    `ff-${TRACE_ID}-${SPAN_ID}-01`,
    `00-${'0'.repeat(32)}-${SPAN_ID}-01`,
    `00-${TRACE_ID}-${'0'.repeat(16)}-01`,
    `00-${TRACE_ID.slice(1)}-${SPAN_ID}-01`,
  ])('is not read from %j', (traceparent) => {
    expect(parseTrace(traceparent)).toBeUndefined();
  });

  it.each(['x'.repeat(513), 'a=\n', ''])('is read without a state that cannot be passed on', (tracestate) => {
    expect(parseTrace(WELL_FORMED, tracestate)).not.toHaveProperty('state');
  });
});
