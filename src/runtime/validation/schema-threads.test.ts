import { afterAll, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../test/support/manual-clock.ts';
import { realClock } from '../../system/real.ts';
import { threadedSchemaValidator } from './schema-threads.ts';
import { problemsOf, UnusableSchema } from './schema-validator.ts';

const schemas = threadedSchemaValidator(realClock);
afterAll(() => schemas.close());

/** Every level of the value doubles the work. */
const TWICE = { properties: { next: { allOf: [{ $ref: '#' }, { $ref: '#' }] } } };

function chain(levels: number): object {
  let value: object = {};
  for (let level = 0; level < levels; level++) value = { next: value };
  return value;
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

  it('fails after a deadline, while others are answered', async () => {
    // The deadline of the attack comes when the test says so, however busy the machine is.
    const clock = new ManualClock();
    const attacked = threadedSchemaValidator(clock);
    await attacked.validate({ type: 'string' }, 'x');
    let isOver = false;
    const attack = attacked.validate(TWICE, chain(60)).then(
      () => 'valid',
      (error: Error) => error.message,
    );
    void attack.then(() => {
      isOver = true;
    });
    const others = Array.from({ length: 20 }, () => attacked.validate({ type: 'string' }, 'x'));
    expect(await Promise.all(others)).toEqual(others.map(() => []));
    expect(isOver).toBe(false);
    clock.advance(60_000);
    expect(await attack).toMatch(/takes longer than/);
    expect(await Promise.all([1, 2, 3].map((value) => attacked.validate({ type: 'number' }, value)))).toEqual([
      [],
      [],
      [],
    ]);
    await attacked.close();
  });

  it('answers one tenant while another has a thousand schemas in line', async () => {
    // Threads that are only starting would let the noisy one go first.
    await Promise.all(['one', 'two', 'three'].map((tenant) => schemas.of(tenant).validate({ type: 'string' }, 'x')));
    const order: string[] = [];
    const noisy = schemas.of('noisy');
    const questions = Array.from({ length: 1_000 }, (_, index) =>
      noisy.problemWith({ properties: { [`p${index}`]: { pattern: '^x' } } }).then(() => order.push('noisy')),
    );
    const quiet = schemas
      .of('quiet')
      .validate({ type: 'string' }, 'x')
      .then(() => order.push('quiet'));
    await Promise.all([...questions, quiet]);
    expect(order.indexOf('quiet')).toBeLessThan(100);
  });

  it('never gives all threads to one tenant', async () => {
    const noisy = schemas.of('noisy');
    const order: string[] = [];
    const attacks = [1, 2].map((attack) =>
      noisy.validate({ ...TWICE, title: `attack ${attack}` }, chain(60)).catch(() => order.push('attack')),
    );
    const quiet = schemas.of('quiet');
    await Promise.all([...attacks, quiet.validate({ type: 'string' }, 'x').then(() => order.push('quiet'))]);
    expect(order).toEqual(['quiet', 'attack', 'attack']);
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
    expect(await closing.problemWith(true)).toMatch(/stopping/);
  });
});
