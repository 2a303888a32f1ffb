import { expect } from 'vitest';
import type { Answer } from './api.ts';

/** The closed error envelope: exactly these keys, whatever went wrong. */
export function expectEnvelope({ status, headers, body, text }: Answer): void {
  expect(status, text).toBeGreaterThanOrEqual(400);
  expect(headers.get('content-type'), text).toMatch(/^application\/json\b/);
  expectEnvelopeBody(body);
}

export function expectEnvelopeBody(body: Answer['body']): void {
  const keys = body?.details === undefined ? ['error', 'message'] : ['details', 'error', 'message'];
  expect(Object.keys(body ?? {}).sort(), JSON.stringify(body)).toEqual(keys);
  expect(body.error).toMatch(/^[A-Za-z][A-Za-z0-9_]*$/);
  expect(body.message).toEqual(expect.any(String));
  expect(body.message).not.toBe('');
  if (body.details !== undefined) {
    expect(body.details).toBeTypeOf('object');
    expect(body.details).not.toBeNull();
    expect(Array.isArray(body.details)).toBe(false);
  }
}

/** The envelope with this status and code. */
export function expectRefusal(answer: Answer, status: number, code: string): void {
  expect({ status: answer.status, error: answer.body?.error }, answer.text).toEqual({ status, error: code });
  expectEnvelope(answer);
}
