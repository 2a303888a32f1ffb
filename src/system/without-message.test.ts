import { expect, it } from 'vitest';
import { loggable, withoutMessage } from './without-message.ts';

class Named extends Error {
  override readonly name = 'Named';
}

it.each([
  new Error('the password of Ada'),
  new Named('the password of Ada'),
  new Error('two lines\n    at the password of Ada'),
])('tells where an exception came from, and not what it says: %s', (error) => {
  const { message, stack } = withoutMessage(error);
  expect(message).toBe('[REDACTED]');
  expect(stack).toMatch(/^\[REDACTED\]\n {4}at .*without-message\.test\.ts/);
  expect(stack).not.toContain('Ada');
});

it('tells nothing of what has no stack, or one that does not go with its message', () => {
  const changed = Object.assign(new Error('second'), { stack: 'Error: first\n    at Ada' });
  const without = Object.assign(new Error('Ada'), { stack: undefined });
  const stacks = [changed, without, 'Ada', undefined].map((error) => withoutMessage(error).stack);
  expect(new Set(stacks)).toEqual(new Set(['[REDACTED]']));
});

it('keeps the message of an exception that the program wrote, and not that of the language', () => {
  const own = new Named('a newer version began the run');
  expect(loggable(own)).toBe(own);
  expect((loggable(new SyntaxError('Invalid regular expression: /Ada/')) as Error).message).toBe('[REDACTED]');
});
