import { describe, expect, it } from 'vitest';
import { ERRORS, type ErrorCode, refuse } from '../protocol/errors.ts';
import { envelopeOf, statusOf } from './answers.ts';

describe('the status of a refusal', () => {
  it.each(Object.entries(ERRORS) as [ErrorCode, number][])('%s is %d', (code, status) => {
    // What belongs inside a run and is answered all the same is a mistake of ours.
    expect(statusOf(refuse(code, 'No.'))).toBe(status === 0 ? 500 : status);
  });

  it('is another where the protocol pins it for this case', () => {
    expect(statusOf({ ...refuse('capability_required', 'No.'), status: 400 })).toBe(400);
  });
});

describe('the envelope of a refusal', () => {
  const SECRET = ['sk', 'ant-api03-Zq8Rk2Lw9Tv4Xy7Bn3Md6Fs1Hj5Pc0Gu'].join('-');

  it('has exactly these members', () => {
    expect(envelopeOf({ ...refuse('conflict', 'No.', { state: 'x' }), headers: { a: 'b' }, status: 409 })).toEqual({
      error: 'conflict',
      message: 'No.',
      details: { state: 'x' },
    });
    expect(Object.keys(envelopeOf(refuse('conflict', 'No.')))).toEqual(['error', 'message']);
  });

  it('holds no secret that a caller sent', () => {
    const refusal = refuse('validation_error', `${SECRET} is not known here.`, {
      field: SECRET,
      fields: [{ path: SECRET }],
    });
    expect(JSON.stringify(envelopeOf(refusal))).not.toContain(SECRET);
  });
});
