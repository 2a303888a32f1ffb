import { Value } from 'typebox/value';
import { describe, expect, it } from 'vitest';
import { ERRORS, ErrorEnvelope, isRefusal, NOT_FOUND, refuse } from './errors.ts';

/** Statuses that the protocol prescribes. */
const PINNED: Partial<Record<keyof typeof ERRORS, number>> = {
  validation_error: 400,
  unsupported_stream_mode: 400,
  unsupported_mock_provider: 400,
  unsupported_force_engine_version: 400,
  channel_access_denied: 400,
  channel_schema_breaking_change: 400,
  unauthenticated: 401,
  key_expired: 401,
  key_revoked: 401,
  forbidden: 403,
  force_engine_version_forbidden: 403,
  mock_provider_forbidden: 403,
  credential_forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  run_already_active: 409,
  idempotency_in_flight: 409,
  idempotency_key_mismatch: 409,
  run_terminal: 409,
  run_state_conflict: 409,
  conflict: 409,
  version_conflict: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  capability_required: 422,
  rate_limited: 429,
  internal_error: 500,
  capability_not_provided: 501,
  service_unavailable: 503,
};

describe('the registry of errors', () => {
  it('has the statuses that the protocol prescribes', () => {
    expect(ERRORS).toMatchObject(PINNED);
  });

  it('has only error statuses, or 0', () => {
    for (const [code, status] of Object.entries(ERRORS)) {
      expect(status === 0 || (status >= 400 && status < 600), code).toBe(true);
      // The protocol writes one of its codes in capitals.
      if (code !== 'INVALID_RESUME_VALUE') expect(code).toMatch(/^[a-z][a-z0-9_]*$/);
    }
  });
});

describe('a refusal', () => {
  it('is a value with a code, a sentence and optional details', () => {
    expect(refuse('conflict', 'No.')).toEqual({ refused: 'conflict', message: 'No.' });
    expect(refuse('conflict', 'No.', { state: 'x' })).toEqual({
      refused: 'conflict',
      message: 'No.',
      details: { state: 'x' },
    });
  });

  it.each([null, undefined, 'refused', 42, [], {}, { message: 'No.' }])('is not %j', (value) => {
    expect(isRefusal(value)).toBe(false);
  });

  it('does not reveal whether an invisible resource exists', () => {
    expect(isRefusal(NOT_FOUND)).toBe(true);
    expect(NOT_FOUND.refused).toBe('not_found');
  });
});

describe('the envelope of an error', () => {
  it('has a code, a message and optional details', () => {
    expect(Value.Check(ErrorEnvelope, { error: 'not_found', message: 'No.' })).toBe(true);
    expect(Value.Check(ErrorEnvelope, { error: 'not_found', message: 'No.', details: { a: 1 } })).toBe(true);
  });

  it.each([
    { error: 'x' },
    { message: 'x' },
    { error: '', message: 'x' },
    { error: 'x', message: '' },
    { error: 'x', message: 'x', details: null },
    { error: 'x', message: 'x', details: [] },
    { error: 'x', message: 'x', correlationId: 'c' },
  ])('is not %j', (value) => {
    expect(Value.Check(ErrorEnvelope, value)).toBe(false);
  });
});
