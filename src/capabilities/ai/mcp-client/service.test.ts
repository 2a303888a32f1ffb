import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import { McpHttpServer } from '../../../../test/support/mcp-http.ts';
import { until } from '../../../../test/support/until.ts';
import { createEgress } from '../../../system/egress.ts';
import { realClock } from '../../../system/real.ts';
import { McpClientService } from './service.ts';

const PLAIN = { args: [], env: {}, secrets: [], timeoutMs: 20_000 };
const alpha = { tenant: 'alpha' };

describe('the list of tools of MCP servers', () => {
  const clock = new ManualClock();
  const warnings: object[] = [];
  let [good, mute]: McpHttpServer[] = [];
  let service: McpClientService;

  beforeAll(async () => {
    [good, mute] = await Promise.all([McpHttpServer.open(), McpHttpServer.open()]);
    mute.instead = () => {};
    const log = {
      debug: () => {},
      info: () => {},
      error: () => {},
      warn: (fields: object) => void warnings.push(fields),
    };
    const egress = createEgress({ clock: realClock, allowLoopback: true });
    const servers = [
      { ...PLAIN, name: 'good', url: good.url, tools: ['echo', 'sum', 'no such tool'] },
      { ...PLAIN, name: 'mute', url: mute.url, tenants: ['beta'] },
    ];
    service = new McpClientService({ clock, egress, log }, servers, '1.0.0');
  });
  afterAll(async () => {
    for (const server of [good, mute]) server?.close();
    await service.stop();
  });

  const names = (tools: readonly { name: string }[]): string[] => tools.map(({ name }) => name);

  it('has what the operator lets through, for whom it is', async () => {
    expect(names(await service.list(alpha))).toEqual(['mcp:good.echo', 'mcp:good.sum']);
    expect(mute!.headers).toEqual([]);
    expect(warnings).toEqual([]);
  });

  it('does not believe what servers say of themselves', async () => {
    for (const tool of await service.list(alpha)) {
      expect(tool).toMatchObject({ safetyTier: 'write', egress: 'host-mediated', replayPolicy: 'non-deterministic' });
    }
  });

  it('does without a server that says nothing, and the log says so', async () => {
    const listed = service.list({ tenant: 'beta' });
    await until(
      async () => mute!.headers.length,
      (requests) => requests > 0,
    );
    clock.advance(5_000);
    expect(names(await listed)).toEqual(['mcp:good.echo', 'mcp:good.sum']);
    expect(warnings).toEqual([{ server: 'mute', reason: expect.stringContaining('no answer') }]);
  });
});
