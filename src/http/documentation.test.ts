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
      '<p><a href="/docs/nodes#flow">a</a> <a href="https://cel.dev">b</a> <a href="#here">c</a></p>\n',
    );
    expect(render('[code](../src/host.ts) [adr](adr/0001.md)')).not.toContain('href');
  });

  it('has headings that links can lead to, and no comments', () => {
    expect(render('## What is `checked`?\n\n<!-- not run: why -->\n')).toContain('<h2 id="what-is-checked">');
    expect(render('<!-- not run: why -->\n\ntext')).not.toContain('not run');
  });

  it('is one of a fixed set, so that no path leads out of it', () => {
    expect(documentationPages(new URL('../../docs/', import.meta.url)).map(({ path }) => path)).toEqual([
      '/docs',
      '/docs/',
      '/docs/*',
    ]);
  });
});
