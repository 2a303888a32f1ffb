import type { Client } from '../../client/index.ts';
import type { CommandSpec, Context } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../exit.ts';
import { PrincipalNames } from '../principal-names.ts';
import { Interrupted } from '../terminal.ts';
import { sanitize } from '../text.ts';
import { parseInteger } from '../values.ts';
import { eventLines, followRun } from '../watch-run.ts';

/** The shortest long poll: without --follow the command prints what is there and does not wait for more. */
const POLL_S = 1;

/** `capstan events`, also available as `capstan runs events`. */
export const events: CommandSpec = {
  name: 'events',
  takes: '[runId]',
  summary: 'Print the events of a run; without a run, the live feed of the tenant',
  flags: {
    '--follow': 'continue until the run has ended, and reconnect when the connection breaks',
    '--after <sequence>': 'start after the event with this sequence',
    '--mode <mode>': 'with --follow: updates, or debug for all events (default: debug, and updates with --json)',
  },
  example: 'events run-0mw4x2c1h0001 --follow',
  async run(context, { args: [runId], options }) {
    const { follow, after: from, mode } = options;
    if (mode !== undefined && mode !== 'updates' && mode !== 'debug')
      throw new UsageError('--mode must be updates or debug.');
    const after = from === undefined ? undefined : parseInteger(String(from), '--after');
    const client = await context.client();
    // A stream waits for minutes for a host that restarts. A host that was never there is to be noticed at once.
    if (follow || runId === undefined) await client.getCapabilities();
    if (runId === undefined) return followTenantFeed(context, client);
    if (follow) return followRun(context, client, runId, { after, mode });
    const names = new PrincipalNames(context, client);
    let lastSequence = after;
    for (;;) {
      const query = { timeout: POLL_S, ...(lastSequence === undefined ? {} : { lastSequence }) };
      const reply = await client.pollRunEvents(runId, query);
      const named = await names.in(reply.events);
      for (const [index, event] of reply.events.entries())
        context.show(event, () => eventLines(context, named[index]!));
      if (reply.isComplete || reply.events.length === 0) return EXIT.done;
      lastSequence = reply.events.at(-1)!.sequence;
    }
  },
};

async function followTenantFeed(context: Context, client: Client): Promise<ExitCode> {
  try {
    for await (const { event, data } of client.followTenant({ signal: context.terminal.interrupted() })) {
      context.show(JSON.parse(data), () => [sanitize(`${event.padEnd(18)} ${data}`)]);
    }
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
  }
  return EXIT.done;
}
