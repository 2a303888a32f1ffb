#!/usr/bin/env node
/** As much of jq as the pages use, so that their lines can be run where jq is not installed: `-r .a.b` and `-r .a[].b`. */
const [option, path] = process.argv.slice(2);
if (option !== '-r' || !/^(\.\w+(\[\])?)+$/.test(path)) throw new Error(`this jq does not know ${option} ${path}`);
let text = '';
for await (const piece of process.stdin.setEncoding('utf8')) text += piece;
let values = [JSON.parse(text)];
for (const [, name, isList] of path.matchAll(/\.(\w+)(\[\])?/g)) {
  values = values.map((value) => value?.[name] ?? null);
  if (isList) values = values.flat();
}
process.stdout.write(values.map((value) => `${typeof value === 'string' ? value : JSON.stringify(value)}\n`).join(''));
