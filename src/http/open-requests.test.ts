import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OpenRequest, OpenRequests } from './open-requests.ts';

describe('an open request', () => {
  it('aborts the signal that somebody has asked for', () => {
    const request = new OpenRequest();
    const { signal } = request;
    expect(signal.aborted).toBe(false);
    request.abort();
    expect(signal.aborted).toBe(true);
    expect(request.signal).toBe(signal);
  });

  it('gives an aborted signal to somebody who asks too late', () => {
    const request = new OpenRequest();
    request.abort();
    expect(request.signal.aborted).toBe(true);
  });
});

describe('open requests', () => {
  it('hold those that were added and not removed, in whatever order that happens', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(20)), (moves) => {
        const open = new OpenRequests();
        const expected: OpenRequest[] = [];
        const all: OpenRequest[] = [];
        for (const move of moves) {
          const ended = move % 3 === 0 ? expected.splice(move % Math.max(1, expected.length), 1)[0] : undefined;
          if (ended) open.delete(ended);
          else {
            const request = new OpenRequest();
            for (const list of [expected, all]) list.push(request);
            open.add(request);
          }
        }
        expect(open.size).toBe(expected.length);
        open.abortAll();
        for (const request of all) expect(request.signal.aborted).toBe(expected.includes(request));
      }),
    );
  });

  it('may end while all are aborted', () => {
    const open = new OpenRequests();
    const requests = Array.from({ length: 5 }, () => new OpenRequest());
    for (const request of requests) {
      open.add(request);
      request.signal.addEventListener('abort', () => open.delete(request));
    }
    open.abortAll();
    expect(open.size).toBe(0);
    expect(requests.every(({ signal }) => signal.aborted)).toBe(true);
  });
});
