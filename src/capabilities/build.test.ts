import { describe, expect, it } from 'vitest';
import { buildCapabilities, ContributionView, inOrderOfNeeds } from './build.ts';
import { defineCapability, door, extensionPoint, type Host, optional } from './capability.ts';

interface Numbers {
  next(): number;
}
const Numbers = door<Numbers>()('numbers');
interface Words {
  word(): string;
}
const Words = door<Words>()('words');
const Greetings = extensionPoint<string>('greetings');

const HOST = {} as Host;

describe('building capabilities', () => {
  const order: string[] = [];
  const words = defineCapability({
    name: 'words',
    provides: Words,
    needs: [Numbers],
    build: (_host, { numbers }) => {
      order.push('words');
      return { service: { word: () => `word ${numbers.next()}` }, advertise: () => ({ words: true }) };
    },
  });
  const numbers = defineCapability({
    name: 'numbers',
    provides: Numbers,
    build: () => {
      order.push('numbers');
      return { service: { next: () => 7 }, advertise: () => ({ numbers: true }) };
    },
  });

  it('builds each after those that it needs, and keeps the contributions in the order of the list', () => {
    const { services, parts } = buildCapabilities<{ words: Words; numbers: Numbers }, object>(
      [words, numbers],
      HOST,
      {},
    );
    expect(order).toEqual(['numbers', 'words']);
    expect(services.words.word()).toBe('word 7');
    expect(parts.map((part) => part.advertise?.())).toEqual([{ words: true }, { numbers: true }]);
    expect(Object.isFrozen(services)).toBe(true);
    expect(Object.isFrozen(parts)).toBe(true);
  });

  it('takes services that are there already', () => {
    const given = { numbers: { next: () => 1 } };
    const { services } = buildCapabilities<{ words: Words; numbers: Numbers }, object>([words], HOST, {}, given);
    expect(services.words.word()).toBe('word 1');
  });

  it('names the capability whose need is not met', () => {
    expect(() => inOrderOfNeeds([words])).toThrow(
      'the capability words needs numbers, which no mounted capability provides',
    );
  });

  it('names the capabilities that need each other', () => {
    const circular = { ...numbers, needs: [Words] };
    expect(() => inOrderOfNeeds([words, circular])).toThrow('capabilities need each other: words → numbers → words');
  });

  it('does without an optional need', () => {
    const alone = defineCapability({
      name: 'alone',
      needs: [optional(Words)],
      build: (_host, needs) => ({ advertise: () => ({ hasWords: needs.words !== undefined }) }),
    });
    const { parts } = buildCapabilities<{ words: Words | undefined }, object>([alone], HOST, {});
    expect(parts[0]!.advertise!()).toEqual({ hasWords: false });
  });

  it('does not compile with a need that nothing provides, or with one of another type', () => {
    // @ts-expect-error `words` needs numbers.
    buildCapabilities<{ words: Words }, object>([words], HOST, {}, { numbers: { next: () => 1 } });
    // @ts-expect-error numbers are not words.
    buildCapabilities<{ words: Words; numbers: Words }, object>([words, numbers], HOST, {});
  });
});

describe('the contributions of all capabilities', () => {
  it('are collected by extension point, in the order of the list', () => {
    const view = new ContributionView();
    view.complete([{ extensions: [Greetings.of('hello', 'hi')] }, {}, { extensions: [Greetings.of('good day')] }]);
    expect(view.extensions(Greetings)).toEqual(['hello', 'hi', 'good day']);
    expect(view.extensions(extensionPoint<string>('greetings'))).toEqual([]);
  });

  it('have all listeners, of which the last one gets the hints of a topic', () => {
    const view = new ContributionView();
    const [first, second] = [() => {}, () => {}];
    view.complete([
      { onAppend: [first], onHint: { topic: first } },
      { onAppend: [second], onHint: { topic: second } },
    ]);
    expect([view.onAppend, [...view.onHint]]).toEqual([[first, second], [['topic', second]]]);
    expect([view.onAppend[0] === first, view.onHint.get('topic') === second]).toEqual([true, true]);
  });

  it('merge into one discovery document', () => {
    const view = new ContributionView();
    view.complete([
      { advertise: () => ({ a: { x: 1 } }) },
      { advertise: () => ({ a: { y: 2 }, b: { supported: false } }) },
    ]);
    expect(view.families()).toEqual({ a: { x: 1, y: 2 }, b: { supported: false } });
    expect([view.advertises('a'), view.advertises('host.a'), view.advertises('b'), view.advertises('c')]).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it('cannot be asked for before everything is built, nor changed afterwards', () => {
    const view = new ContributionView();
    expect(() => view.reactions).toThrow('while the host was being built');
    view.complete([]);
    expect(() => view.complete([])).toThrow('the host is built already');
  });
});
