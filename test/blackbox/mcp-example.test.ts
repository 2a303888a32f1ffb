import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { KEYS } from '../support/host.ts';
import { runProgram } from '../support/process.ts';
import { onOneStore } from '../support/stores.ts';

const FOLDER = fileURLToPath(new URL('../../examples/mcp-tool/', import.meta.url));

onOneStore('the example of a workflow that is a tool', (host) => {
  it('prints what its page says', async () => {
    const environment = { CAPSTAN_URL: host().url, CAPSTAN_KEY: KEYS.editor.key };
    const { code, output } = await runProgram([], environment, { path: 'call.mjs', folder: FOLDER });
    expect(output.trim().split('\n')).toEqual([
      expect.stringMatching(/^tools: .*shipping-quote.*runStatus/),
      '  quote is done',
      '  offer is done',
      'light: We take it to DE for 11 EUR.',
      'heavy: waiting-approval',
      'later: We take it to FR for 132 EUR.',
    ]);
    expect(code).toBe(0);
  });
});
