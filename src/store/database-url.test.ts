import { describe, expect, it } from 'vitest';
import { parseDatabaseUrl } from './database-url.ts';

describe('a database URL', () => {
  it.each([
    ['postgres://u:p@db/x', ['postgres://u:p@db/x'], ['db']],
    ['postgresql://db:5433/x?sslmode=no-verify', ['postgresql://db:5433/x?sslmode=no-verify'], ['db:5433']],
    ['postgres://u:p@a:5432,b:5433/x', ['postgres://u:p@a:5432/x', 'postgres://u:p@b:5433/x'], ['a:5432', 'b:5433']],
    [
      'postgres://u:p%40@[::1]:1,[::1]:2/x?target_session_attrs=read-write&ssl=true',
      ['postgres://u:p%40@[::1]:1/x?ssl=true', 'postgres://u:p%40@[::1]:2/x?ssl=true'],
      ['[::1]:1', '[::1]:2'],
    ],
    ['postgres:///x?host=/run/postgresql', ['postgres:///x?host=/run/postgresql'], ['']],
  ])('%s names its servers, in order', (text, urls, names) => {
    const parsed = parseDatabaseUrl(text);
    expect(parsed).toMatchObject({ servers: urls.map((url, index) => ({ url, name: names[index] })) });
  });

  it('says how long to wait for a server', () => {
    expect(parseDatabaseUrl('postgres://a,b/x?connect_timeout=3')).toEqual({
      servers: [
        { name: 'a', url: 'postgres://a/x' },
        { name: 'b', url: 'postgres://b/x' },
      ],
      connectTimeoutMs: 3_000,
    });
    expect(parseDatabaseUrl('postgres://a/x?connect_timeout=0')).toMatchObject({ connectTimeoutMs: undefined });
  });

  it.each([
    ['mysql://db/x', 'postgres://'],
    ['nonsense', 'postgres://'],
    ['postgres://a:5432,b:nonsense/x', 'postgres://'],
    ['postgres://a,b/x?target_session_attrs=standby', 'target_session_attrs'],
    ['postgres://a/x?connect_timeout=soon', 'connect_timeout'],
  ])('%s is refused', (text, reason) => {
    expect(parseDatabaseUrl(text)).toContain(reason);
  });
});
