import { readFileSync } from 'node:fs';
import type { FastifyRequest } from 'fastify';
import { describe, expect, it } from 'vitest';
import { documentationPages, render } from './documentation.ts';

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
    expect(render('[code](../src/host.ts) [adr](adr/0001.md)')).not.toContain('href');
  });

  it('has headings that links can lead to, and no comments', () => {
    expect(render('## What is `checked`?\n\n<!-- not run: why -->\n')).toContain('<h2 id="what-is-checked">');
    expect(render('<!-- not run: why -->\n\ntext')).not.toContain('not run');
  });

  it('is listed under the tasks of the README', async () => {
    const [, page] = documentationPages(new URL('../../docs/', import.meta.url));
    const { body } = (await page!.answer({ url: '/docs/' } as FastifyRequest)) as { body: string };
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
    const [, page] = documentationPages(new URL('../../docs/', import.meta.url));
    const get = async (url: string) => page!.answer({ url } as FastifyRequest);
    expect(await get('/docs/')).toMatchObject({ body: expect.stringContaining('<h1 id="documentation">') });
    expect(await get('/docs/nodes.md')).toMatchObject({ type: 'text/html; charset=utf-8' });
    expect(await get('/docs/%2e%2e/README')).toMatchObject({ status: 404 });
    expect(await get('/docs/..%2fREADME')).toMatchObject({ status: 404 });
  });
});
