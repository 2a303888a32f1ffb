import { describe, expect, it } from 'vitest';
import { createEgress } from '../system/egress.ts';
import { realClock } from '../system/real.ts';
import { withAllowEntry } from './egress-advice.ts';

const egress = createEgress({ clock: realClock, allowLoopback: false });
const told = (url: string): string => withAllowEntry(egress.problemWith(url) ?? 'none', url);

describe('the advice on a URL that is not permitted', () => {
  it.each([
    ['http://127.0.0.1:8080/hook?key=secret', 'CAPSTAN_EGRESS_ALLOW=http://127.0.0.1:8080, after a comma'],
    ['https://localhost/hook', 'CAPSTAN_EGRESS_ALLOW=https://localhost, after a comma'],
    ['http://example.com/', 'CAPSTAN_EGRESS_ALLOW=http://example.com, after a comma'],
  ])('has the entry for %s', (url, entry) => {
    expect(told(url)).toContain(entry);
    expect(told(url)).not.toContain('secret');
  });

  it.each(['ftp://example.com', 'nonsense', 'https://user:password@localhost'])('has none for %s', (url) => {
    expect(told(url)).not.toContain('=');
  });
});
