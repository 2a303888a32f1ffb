import { describe, expect, it } from 'vitest';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { payloadOf, readableHeaders } from './payload.ts';
import {
  CHAIN_MAX,
  chainOf,
  compileTrigger,
  declaredTriggers,
  deliveryIdFor,
  inputsFor,
  passes,
  refuseChain,
} from './rules.ts';

describe('a chain of runs that events start', () => {
  it.each([
    [undefined, 0],
    [{}, 0],
    [{ trigger: 'x' }, 0],
    [{ trigger: { chain: 3 } }, 3],
    [{ trigger: { chain: -1_000_000 } }, 0],
    [{ trigger: { chain: 1.5 } }, 0],
    [{ trigger: { chain: '9' } }, 0],
  ])('is counted from metadata that a caller may have written: %j', (metadata, chain) => {
    expect(chainOf(metadata)).toBe(chain);
  });

  it('ends at its limit', () => {
    expect(refuseChain(CHAIN_MAX)).toBeUndefined();
    expect(refuseChain(CHAIN_MAX + 1)).toMatchObject({ refused: 'conflict', details: { max: CHAIN_MAX } });
  });
});

describe('the expressions of a trigger', () => {
  const scope = { body: { id: 7, list: [1, 2] }, headers: { 'x-id': 'abc' }, query: {} };

  it('filter, and count an error as false', () => {
    const isPassed = (filter: string): boolean => passes(compileTrigger('webhook', { filter }), scope);
    expect(['body.id == 7', 'body.nobody == 7', 'body.id', '1 / 0 == 1'].map(isPassed)).toEqual([
      true,
      false,
      false,
      false,
    ]);
    expect(passes(compileTrigger('webhook', {}), scope)).toBe(true);
  });

  it('compute inputs, and name the one that fails', () => {
    const inputs = (texts: Record<string, string>) =>
      inputsFor(compileTrigger('webhook', { inputs: texts }), scope, {});
    expect(inputs({ a: 'body.id + 1', b: 'body.list', c: "body.?nobody.orValue('none')" })).toEqual({
      a: 8,
      b: [1, 2],
      c: 'none',
    });
    expect(inputs({ a: 'body.nobody.x' })).toMatchObject({ details: { field: 'inputs.a' } });
  });

  it('tell deliveries apart, if there is something to tell them by', () => {
    const idOf = (deliveryId: string) => deliveryIdFor(compileTrigger('webhook', { deliveryId }), scope);
    expect(idOf("headers['x-id']")).toBe('abc');
    expect(idOf('body.id')).toBe('7');
    for (const none of ['body.nobody', 'body', "''", 'true']) expect(idOf(none)).toBeUndefined();
    expect(deliveryIdFor(compileTrigger('webhook', { scheme: 'github' }), scope)).toBeUndefined();
  });
});

describe('what is sent', () => {
  const read = (type: string, text: string, scheme: 'github' | 'hmac' = 'hmac') =>
    payloadOf(scheme, type, Buffer.from(text));

  it.each([
    ['application/json', '{"a":1}', { a: 1 }],
    ['application/json; charset=utf-8', '', null],
    ['application/vnd.acme+json', '[1]', [1]],
    ['application/x-www-form-urlencoded', 'a=1&b=x+y&b=z', { a: '1', b: ['x y', 'z'] }],
    ['text/plain', '{"a":1}', '{"a":1}'],
    ['', 'text', 'text'],
  ])('as %s is read: %s', (type, text, body) => {
    expect(read(type, text)).toEqual({ body });
  });

  it('may be JSON in a field, of senders that do so', () => {
    const form = 'application/x-www-form-urlencoded';
    expect(read(form, 'payload=%7B%22a%22%3A1%7D', 'github')).toEqual({ body: { a: 1 } });
    expect(read(form, 'payload=%7B%22a%22%3A1%7D')).toEqual({ body: { payload: '{"a":1}' } });
    expect(isRefusal(read(form, 'payload=%7B', 'github'))).toBe(true);
  });

  it('has headers, but for credentials', () => {
    const headers = { authorization: 'x', cookie: 'y', 'x-sig': 'z', 'x-a': ['1', '2'], gone: undefined, host: 'h' };
    expect(readableHeaders(headers, ['x-sig'])).toEqual({ 'x-a': '1, 2', host: 'h' });
  });
});

describe('the triggers of a definition', () => {
  const hook = { id: 'hook', type: 'webhook' as const, config: { scheme: 'path' } };

  it('are those that others set off, on or off', () => {
    const triggers = [hook, { ...hook, id: 'off', enabled: false }, { id: 'm', type: 'manual' as const }];
    const found = declaredTriggers(workflow([node('a')], [], { triggers }));
    expect(isRefusal(found) || [...found].map(([id, { isEnabled }]) => [id, isEnabled])).toEqual([
      ['hook', true],
      ['off', false],
    ]);
  });

  it('have ids of their own', () => {
    const found = declaredTriggers(workflow([node('a')], [], { triggers: [hook, hook] }));
    expect(found).toMatchObject({ status: 422, details: { fields: [{ path: 'triggers[1].id' }] } });
  });
});
