#!/usr/bin/env node
/** As much of curl as the README uses, so that its lines can be run where curl is not installed. */
import { readFileSync } from 'node:fs';

const options = { headers: {} };
let url = '';
const given = process.argv.slice(2);
while (given.length > 0) {
  const word = given.shift();
  if (word === '-X') options.method = given.shift();
  else if (word === '-H') {
    const [name, ...value] = given.shift().split(': ');
    options.headers[name] = value.join(': ');
  } else if (word === '-d') {
    const data = given.shift();
    options.body = data.startsWith('@') ? readFileSync(data === '@-' ? 0 : data.slice(1), 'utf8') : data;
  } else if (word.startsWith('http')) url = word;
  else if (word !== '-s' && word !== '-N') throw new Error(`this curl does not know ${word}`);
}
const response = await fetch(url, { method: options.body === undefined ? 'GET' : 'POST', ...options });
for await (const chunk of response.body) process.stdout.write(chunk);
