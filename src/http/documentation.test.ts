import { readFileSync } from 'node:fs';
import type { FastifyRequest } from 'fastify';
import { describe, expect, it } from 'vitest';
import { documentationPages, render as renderAt } from './documentation.ts';
import { DocumentationFiles } from './documentation-files.ts';
import type { PageContent } from './pages.ts';

const ROOT = new URL('../../', import.meta.url);
const files = new DocumentationFiles(ROOT);
const render = (text: string, path = 'docs/nodes.md'): string => renderAt(text, { path, files });
const [, page] = documentationPages(ROOT);
const get = async (url: string): Promise<PageContent> => page!.answer({ url } as FastifyRequest);

describe('a page of the documentation', () => {
  it.each([
    ['<script>alert(1)</script>', '<script'],
    ['a <img src=x onerror=alert(1)> b', '<img'],
    ['[x](javascript:alert(1))', 'href'],
    ['[x](data:text/html,hello)', 'href'],
    ['![x](https://elsewhere.example/p.png)', '<img'],
    ['[x](<" onclick="alert(1)>)', '" onclick'],
    ['# <b onclick=x>', '<b'],
  ])('shows %j as text', (text, never) => {
    expect(render(text)).not.toContain(never);
  });

  it('leads to other pages of the host, and to the web', () => {
    expect(render('[a](nodes.md#flow) [b](https://cel.dev) [c](#here)')).toBe(
      '<p><a href="nodes#flow">a</a> <a href="https://cel.dev">b</a> <a href="#here">c</a></p>\n',
    );
  });

  it('leads to the README and to examples, from wherever it is itself', () => {
    expect(render('[a](../README.md#test) [b](../examples/mcp-tool) [c](../examples/worker.py)')).toBe(
      '<p><a href="README#test">a</a> <a href="examples/mcp-tool/README">b</a> <a href="examples/worker.py">c</a></p>\n',
    );
    expect(render('[a](../../docs/mcp.md)', 'examples/mcp-tool/README.md')).toContain('href="../../mcp"');
    expect(render('[a](docs/mcp.md)', 'README.md')).toContain('href="mcp"');
  });

  it('names the files of the repository that the host does not serve', () => {
    expect(render('[the host](../src/host.ts)')).toBe('<p>the host (<code>src/host.ts</code> in the repository)</p>\n');
    expect(render('[adr](adr/0001.md) [out](../../../etc/passwd)')).not.toContain('href');
  });

  it('shows pictures of its own', () => {
    expect(render('![A run](console/run-light.jpg)')).toBe('<p><img src="console/run-light.jpg" alt="A run"></p>\n');
    expect(render('![A "run"](docs/performance/alone.svg)', 'README.md')).toContain(
      '<img src="performance/alone.svg" alt="A &quot;run&quot;">',
    );
    expect(render('![x](../examples/worker.py) ![y](console/nowhere.jpg)')).not.toContain('<img');
  });

  it('has no link and no picture that leads nowhere', async () => {
    for (const path of [...files.pages, 'README.md', 'examples/README.md', 'examples/triage/README.md']) {
      const address = files.addressOf(path)!;
      const { body } = await get(`/docs/${address}`);
      const targets = [...String(body).matchAll(/<(?:img src|a href)="(?!https?:)([^"#]+)/g)].map(
        ([, target]) => target!,
      );
      for (const target of targets.filter((each) => !/^[./]+(?:docs\/)?$/.test(each))) {
        const { pathname } = new URL(target, `http://host/docs/${address}`);
        expect(await get(pathname), `${path}: ${target}`).not.toHaveProperty('status');
      }
    }
  });

  it('has headings that links can lead to, and no comments', () => {
    expect(render('## What is `checked`?\n\n<!-- not run: why -->\n')).toContain('<h2 id="what-is-checked">');
    expect(render('<!-- not run: why -->\n\ntext')).not.toContain('not run');
  });

  it('is listed under the tasks of the README', async () => {
    const body = String((await get('/docs/')).body);
    const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8').split('## Read next')[1]!;
    const tasks = [...readme.matchAll(/^\| \**([^|*]+?)\** \| ([^|]*) \|$/gm)].flatMap(([, task, pages]) => {
      const names = [...pages!.matchAll(/\(docs\/([\w-]+)\.md\)/g)].map(([, name]) => name);
      return names.length === 0 ? [] : [{ task, names }];
    });
    const shown = body
      .split('<h2 ')
      .slice(1)
      .map((part) => ({
        task: part.match(/>([^<]+)<\/h2>/)![1],
        names: [...part.matchAll(/<a href="([\w-]+)"/g)].map(([, name]) => name),
      }));
    expect(shown).toEqual(tasks);
  });

  it('is one of a fixed set, so that no path leads out of it', async () => {
    expect(await get('/docs/')).toMatchObject({ body: expect.stringContaining('<h1 id="documentation">') });
    expect(await get('/docs/nodes.md')).toMatchObject({ type: 'text/html; charset=utf-8' });
    for (const path of [
      '%2e%2e/SECURITY',
      '..%2fpackage.json',
      'examples/%2e%2e/%2e%2e/package.json',
      '../package.json',
    ])
      expect(await get(`/docs/${path}`), path).toMatchObject({ status: 404 });
    for (const path of ['examples', 'examples/project', 'console/', 'performance/peers.json', 'adr/0001', 'INDEX'])
      expect(await get(`/docs/${path}`), path).toMatchObject({ status: 404 });
  });

  it('has pictures and examples beside it, which can run nothing even if they are opened by themselves', async () => {
    const types = {
      'performance/alone.svg': 'image/svg+xml',
      'console/run-light.jpg': 'image/jpeg',
      'examples/worker.py': 'text/plain; charset=utf-8',
      'examples/project/capstan.config.ts': 'text/plain; charset=utf-8',
    };
    for (const [path, type] of Object.entries(types)) {
      expect(await get(`/docs/${path}`), path).toMatchObject({
        type,
        body: expect.any(Buffer),
        headers: { 'Content-Security-Policy': expect.stringMatching(/^default-src 'none'.*; sandbox$/) },
      });
    }
  });
});
