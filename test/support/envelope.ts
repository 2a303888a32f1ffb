import { expect } from 'vitest';
import type { Answer } from './api.ts';

const CODE = /^[A-Za-z][A-Za-z0-9_]*$/;

/** The closed error envelope: exactly these keys, whatever went wrong. */
export function expectEnvelope({ status, headers, body, text }: Answer): void {
  const type = headers.get('content-type') ?? '';
  const isRefusal = status >= 400 && /^application\/json\b/.test(type);
  expect(isRefusal ? 'a refusal in JSON' : { status, type, text }).toBe('a refusal in JSON');
  expectEnvelopeBody(body);
}

/** One expectation for all of it: some tests are refused thousands of times. */
export function expectEnvelopeBody(body: Answer['body']): void {
  const { error, message, details = {}, ...others } = body ?? {};
  const isSound =
    typeof error === 'string' &&
    CODE.test(error) &&
    typeof message === 'string' &&
    message !== '' &&
    typeof details === 'object' &&
    details !== null &&
    !Array.isArray(details) &&
    Object.keys(others).length === 0;
  expect(isSound ? 'an error envelope' : body).toBe('an error envelope');
}

/** The envelope with this status and code. */
export function expectRefusal(answer: Answer, status: number, code: string): void {
  expect({ status: answer.status, error: answer.body?.error }, answer.text).toEqual({ status, error: code });
  expectEnvelope(answer);
}
