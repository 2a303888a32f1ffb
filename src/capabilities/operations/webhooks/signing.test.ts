import { createHash, createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { deliveryIdOf, fingerprintOf, newSecret, signedRequest } from './signing.ts';

const event = { sequence: 47, type: 'run.completed', body: '{"eventId":"evt-1","note":"gr\u00fc\u00dfe \\u0000"}' };
const addressed = {
  webhookId: 'wh-abc',
  scopeName: 'alpha',
  secret: 'f'.repeat(64),
  runId: 'run-xyz',
  deliveryId: 'dlv-1',
  event,
  sentAt: 1_700_000_000_999,
  agent: 'openwop-webhook-dispatcher/1',
};

describe('what a receiver gets', () => {
  const { headers, body } = signedRequest(addressed);

  it('is signed over the time of sending and the very bytes of the body', () => {
    expect(headers['X-openwop-Timestamp']).toBe('1700000000');
    const mac = createHmac('sha256', addressed.secret)
      .update(Buffer.from(`1700000000.${body}`, 'utf8'))
      .digest('hex');
    expect(headers['X-openwop-Signature']).toBe(`sha256=${mac}`);
    expect(headers['X-openwop-Signature-Algorithm']).toBe('v1');
  });

  it('has every header of the protocol under both names', () => {
    const names = ['Webhook-Id', 'Event-Type', 'Timestamp', 'Signature', 'Signature-Algorithm', 'Delivery-Id'];
    for (const name of names) {
      expect(headers[`X-openwop-${name}`]).not.toBe('');
      expect(headers[`OpenWOP-${name}`]).toBe(headers[`X-openwop-${name}`]);
    }
    expect(headers).toMatchObject({
      'Content-Type': 'application/json',
      'User-Agent': 'openwop-webhook-dispatcher/1',
      'X-openwop-Webhook-Id': 'wh-abc',
      'X-openwop-Event-Type': 'run.completed',
      'X-openwop-Delivery-Id': 'dlv-1',
    });
  });

  it('carries the event in the bytes of the log', () => {
    expect(body).toContain(`"event":${event.body}}`);
    expect(JSON.parse(body)).toEqual({
      type: 'run.completed',
      runId: 'run-xyz',
      workspaceId: 'alpha',
      event: JSON.parse(event.body),
    });
  });
});

describe('ids and secrets', () => {
  it('a delivery has one id, whoever computes it, and no other has it', () => {
    expect(deliveryIdOf('wh-abc', 'run-xyz', 47)).toBe(deliveryIdOf('wh-abc', 'run-xyz', 47));
    const ids = [
      deliveryIdOf('wh-abc', 'run-xyz', 47),
      deliveryIdOf('wh-abc', 'run-xyz', 48),
      deliveryIdOf('wh-abc', 'run-xyw', 47),
      deliveryIdOf('wh-abd', 'run-xyz', 47),
    ];
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^dlv-[a-z0-9]+$/);
  });

  it('a secret is 64 hex digits that nobody has had before, known by the beginning of its digest', () => {
    const secret = newSecret();
    expect(secret).toMatch(/^[0-9a-f]{64}$/);
    expect(newSecret()).not.toBe(secret);
    expect(fingerprintOf(secret)).toBe(createHash('sha256').update(secret).digest('hex').slice(0, 8));
  });
});
