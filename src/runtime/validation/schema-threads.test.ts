import { afterAll, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../test/support/manual-clock.ts';
import { realClock } from '../../system/real.ts';
import { TemporaryFailure } from '../../system/temporary-failure.ts';
import { threadedSchemaValidator } from './schema-threads.ts';
import { problemsOf, UnusableSchema } from './schema-validator.ts';

const schemas = threadedSchemaValidator(realClock);
afterAll(() => schemas.close());

const HOURS_MS = 10 * 3_600_000;
/** Much less than a host allows, so that attacks are over soon. */
const LITTLE = { limits: { processorMs: 200, waitMs: HOURS_MS } };

/** Every level of the value doubles the work. */
const TWICE = { properties: { next: { allOf: [{ $ref: '#' }, { $ref: '#' }] } } };

function chain(levels: number): object {
  let value: object = {};
  for (let level = 0; level < levels; level++) value = { next: value };
  return value;
}

/** Waits for an answer while the clock goes on by so much with each turn. */
async function whileTimePasses<T>(clock: ManualClock, answer: Promise<T>, ms: number): Promise<T> {
  let isOver = false;
  const settled = answer.finally(() => {
    isOver = true;
  });
  settled.catch(() => {});
  while (!isOver) {
    clock.advance(ms);
    await new Promise<void>((resolve) => clock.soon(resolve));
  }
  return settled;
}

describe('validation in threads', () => {
  it('finds the problems of values and of schemas', async () => {
    expect(await schemas.validate({ type: 'string' }, 'x')).toEqual([]);
    expect(await schemas.validate({ type: 'string' }, 7)).toEqual(['/ must be string']);
    expect(await schemas.problemWith({ type: 'string' })).toBeUndefined();
    expect(await schemas.problemWith({ type: 'strange' })).toMatch(/schema is invalid/);
    expect(await schemas.problemWith(undefined)).toMatch(/must be an object or a boolean/);
    expect(await schemas.problemWith({ title: 'x'.repeat(70_000) })).toMatch(/longer than/);
    await expect(schemas.validate({ type: 'strange' }, 7)).rejects.toThrow(UnusableSchema);
    expect(await problemsOf(schemas, { type: 'strange' }, 7)).toEqual([expect.stringMatching(/cannot be checked/)]);
  });

  it('fails when it takes too much processor time, while others are answered', async () => {
    const attacked = threadedSchemaValidator(realClock, LITTLE);
    await attacked.validate({ type: 'string' }, 'x');
    const attack = attacked.validate(TWICE, chain(60)).then(
      () => 'valid',
      (error: Error) => error.message,
    );
    const others = Array.from({ length: 20 }, () => attacked.validate({ type: 'string' }, 'x'));
    expect(await Promise.all(others)).toEqual(others.map(() => []));
    expect(await attack).toMatch(/takes more than 200 ms of processor time/);
    expect(await Promise.all([1, 2, 3].map((value) => attacked.validate({ type: 'number' }, value)))).toEqual([
      [],
      [],
      [],
    ]);
    await attacked.close();
  });

  it('is waited for on a machine that gives it little of a processor', async () => {
    const clock = new ManualClock();
    const starved = threadedSchemaValidator(clock, { limits: { processorMs: HOURS_MS, waitMs: 2 * HOURS_MS } });
    await starved.validate({ type: 'string' }, 'x');
    expect(await whileTimePasses(clock, starved.validate(TWICE, chain(16)), 20)).toEqual([]);
    const never = whileTimePasses(clock, starved.validate(TWICE, chain(60)), HOURS_MS);
    await expect(never).rejects.toThrow(TemporaryFailure);
    expect(await starved.validate({ type: 'string' }, 'x')).toEqual([]);
    await starved.close();
  });

  it('answers one tenant while another has hundreds of schemas in line', async () => {
    // Threads that are only starting would let the noisy one go first.
    await Promise.all(['one', 'two', 'three'].map((tenant) => schemas.of(tenant).validate({ type: 'string' }, 'x')));
    const order: string[] = [];
    const noisy = schemas.of('noisy');
    const questions = Array.from({ length: 300 }, (_, index) =>
      noisy.problemWith({ properties: { [`p${index}`]: { pattern: '^x' } } }).then(() => order.push('noisy')),
    );
    const quiet = schemas
      .of('quiet')
      .validate({ type: 'string' }, 'x')
      .then(() => order.push('quiet'));
    await Promise.all([...questions, quiet]);
    expect(order.indexOf('quiet')).toBeLessThan(100);
  });

  // Two attacks use up their processor time, which takes as long as others leave them none.
  it('never gives all threads to one tenant', { timeout: 120_000 }, async () => {
    const attacked = threadedSchemaValidator(realClock, LITTLE);
    await Promise.all(['one', 'two'].map((tenant) => attacked.of(tenant).validate({ type: 'string' }, 'x')));
    const noisy = attacked.of('noisy');
    const order: string[] = [];
    const attacks = [1, 2].map((attack) =>
      noisy.validate({ ...TWICE, title: `attack ${attack}` }, chain(60)).catch(() => order.push('attack')),
    );
    const quiet = attacked.of('quiet');
    await Promise.all([...attacks, quiet.validate({ type: 'string' }, 'x').then(() => order.push('quiet'))]);
    expect(order).toEqual(['quiet', 'attack', 'attack']);
    await attacked.close();
  });

  it('fails when it takes too much memory', async () => {
    const items = { items: { $ref: '#' }, uniqueItems: true };
    const patterns = Object.fromEntries(
      Array.from({ length: 60 }, (_, index) => [`(${'x{1,100}'.repeat(8)}){1,5}${index}`, {}]),
    );
    expect(await schemas.problemWith({ ...items, patternProperties: patterns })).toBeDefined();
    expect(await schemas.validate(items, [[1], [2]])).toEqual([]);
  });

  it('answers nothing once it is closed', async () => {
    const closing = threadedSchemaValidator(realClock);
    expect(await closing.validate(true, 1)).toEqual([]);
    await closing.close();
    await expect(closing.problemWith(true)).rejects.toThrow(/stopping/);
  });
});
