import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';

/** A database of one's own on the test server. */
export async function freshDatabase(serverUrl: string): Promise<string> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  const server = new pg.Client(serverUrl);
  await server.connect();
  await server.query(`CREATE DATABASE ${name}`);
  await server.end();
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/** A folder of one's own; `remove` takes it away. */
export function freshFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'capstan-test-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
