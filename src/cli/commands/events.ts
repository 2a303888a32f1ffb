import type { CommandSpec, Context } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../exit.ts';
import { Interrupted } from '../terminal.ts';
import { harmless } from '../text.ts';
import { wholeNumber } from '../values.ts';
import { eventLines, followRun } from '../watch-run.ts';

/** Events to show of a run that is not followed: one question for news, answered at once. */
const SECONDS = 1;

export const events: CommandSpec = {
  name: 'events',
  takes: '[runId]',
  summary: 'The events of a run so far; without a run, what happens in the tenant from now on',
  flags: {
    '--follow': 'go on until the run has ended, whatever happens to the connection',
    '--after <sequence>': 'only what comes after this event',
    '--mode <mode>': 'updates, or debug for everything, with --follow; a terminal shows everything',
  },
  example: 'events run-0mw4x2c1h0001 --follow',
  async run(context, { args: [runId], options }) {
    const { follow, after: from, mode } = options;
    if (mode !== undefined && mode !== 'updates' && mode !== 'debug')
      throw new UsageError('--mode is updates or debug.');
    const after = from === undefined ? undefined : wholeNumber(String(from), '--after');
    if (runId === undefined) return watchTenant(context);
    const client = await context.client();
    if (follow) return followRun(context, client, runId, { after, mode });
    let lastSequence = after;
    for (;;) {
      const query = { timeout: SECONDS, ...(lastSequence === undefined ? {} : { lastSequence }) };
      const reply = await client.pollRunEvents(runId, query);
      for (const event of reply.events) context.show(event, () => eventLines(context, event));
      if (reply.isComplete || reply.events.length === 0) return EXIT.done;
      lastSequence = reply.events.at(-1)!.sequence;
    }
  },
};

async function watchTenant(context: Context): Promise<ExitCode> {
  const client = await context.client();
  try {
    for await (const { event, data } of client.followTenant({ signal: context.terminal.interrupted() })) {
      context.show(JSON.parse(data), () => [harmless(`${event.padEnd(18)} ${data}`)]);
    }
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
  }
  return EXIT.done;
}
