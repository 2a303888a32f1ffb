import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { POLL_MAX_S } from '../../src/capabilities/running/events/routes.ts';
import { readConfig } from '../../src/config.ts';
import { KEEP_ALIVE_MS } from '../../src/http/keep-alive.ts';
import { startTestHost, type TestHost } from '../support/host.ts';

/** The examples of load balancers say what hosts do: ports, probes and times are those of the code. */

const fileOf = (name: string): string => fileURLToPath(new URL(`../../examples/deploy/${name}`, import.meta.url));
const nginx = readFileSync(fileOf('nginx.conf'), 'utf8');
const haproxy = readFileSync(fileOf('haproxy.cfg'), 'utf8');
const defaults = readConfig({}, {});
const LONGEST_SILENCE_MS = Math.max(POLL_MAX_S * 1_000, KEEP_ALIVE_MS);

/** The milliseconds of a setting, as `90s` or `500ms`. */
function milliseconds(text: string, setting: string): number {
  const [, amount, unit] = new RegExp(`\\b${setting} (\\d+)(ms|s)\\b`).exec(text) ?? [];
  return Number(amount) * (unit === 's' ? 1_000 : 1);
}

/** What `--version` prints, or undefined if the program is not on this machine. */
function isInstalled(program: string): boolean {
  try {
    execFileSync(program, ['-v'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

describe('examples of load balancers', () => {
  let host: TestHost;
  beforeAll(async () => {
    host = await startTestHost('sqlite', inject('postgresUrl'));
  });
  afterAll(() => host?.stop());

  const idleMs = (): Promise<number> =>
    new Promise((resolve) => {
      get(`${host.url}/healthz`, { headers: { connection: 'keep-alive' } }, (response) => {
        response.resume();
        resolve(1_000 * Number(/timeout=(\d+)/.exec(String(response.headers['keep-alive']))?.[1]));
      });
    });

  it('lead to the port that hosts listen on', () => {
    for (const text of [nginx, haproxy]) {
      const ports = [...text.matchAll(/^ *server (?:\w+ )?[\d.]+:(\d+)/gm)].map(([, port]) => Number(port));
      expect(ports).toEqual([defaults.port, defaults.port]);
    }
  });

  it('ask a probe that hosts have, and quickly enough', async () => {
    const [, probe] = /uri (\S+)/.exec(haproxy)!;
    expect((await host.as('owner').get(probe!)).status).toBe(200);
    const [, fall] = /\bfall (\d+)/.exec(haproxy)!;
    expect(milliseconds(haproxy, 'inter') * Number(fall)).toBeLessThan(defaults.drainMs);
  });

  it('wait for longer than a host is silent, and keep connections for less long than it does', async () => {
    expect(milliseconds(nginx, 'proxy_read_timeout')).toBeGreaterThan(LONGEST_SILENCE_MS);
    expect(milliseconds(haproxy, 'timeout server')).toBeGreaterThan(LONGEST_SILENCE_MS);
    expect(milliseconds(haproxy, 'timeout client')).toBeGreaterThan(LONGEST_SILENCE_MS);
    expect(milliseconds(nginx, 'keepalive_timeout')).toBeLessThan(await idleMs());
    expect(milliseconds(haproxy, 'timeout http-keep-alive')).toBeLessThan(await idleMs());
  });

  it('take the bodies that hosts take, and pass streams on as they come', () => {
    const [, megabytes] = /client_max_body_size (\d+)m/.exec(nginx)!;
    expect(Number(megabytes) * 1_048_576).toBe(defaults.maxRequestBodyBytes);
    expect(nginx).toContain('proxy_buffering off');
    expect(`${nginx}${haproxy}`).not.toMatch(/ip_hash|cookie|stick/);
  });

  it('are accepted by the programs themselves, where they are installed', () => {
    const check = (program: string, ...args: string[]): unknown =>
      isInstalled(program) ? execFileSync(program, args, { stdio: 'pipe' }) : 'not installed';
    expect(check('haproxy', '-c', '-f', fileOf('haproxy.cfg'))).toBeDefined();
    expect(check('nginx', '-t', '-q', '-e', 'stderr', '-c', fileOf('nginx.conf'))).toBeDefined();
  });
});
