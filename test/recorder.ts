import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, inject } from 'vitest';
import { observeFetch } from './support/recorder/fetch.ts';
import { recorder } from './support/recorder/recorder.ts';
import { observeAnswers } from './support/request.ts';

/** Every answer that a black-box test gets is held against the schemas; one that does not fit fails the test. */

beforeAll(async () => {
  observeFetch();
  observeAnswers((method, url, head) => recorder.listen(method, url, head));
  await recorder.prepare();
});

afterEach(() => {
  expect(recorder.takeProblems(), 'what the host sent and no schema allows').toEqual([]);
});

afterAll(() => {
  writeFileSync(join(inject('recordings'), `${process.pid}.json`), JSON.stringify(recorder.tally));
  expect(recorder.takeProblems(), 'what the host sent outside of a test and no schema allows').toEqual([]);
});
