import type { Static } from 'typebox';
import { isObject } from '../../protocol/format/json.ts';
import type { RunDiff } from '../../protocol/running/inspection.ts';
import type { CommandSpec } from '../command.ts';
import { EXIT } from '../exit.ts';
import { sanitize } from '../text.ts';
import { sideBySide } from '../value-lines.ts';

type Diff = Static<typeof RunDiff>;

/** The width that is assumed where the output is no terminal. */
const COLUMNS = 100;

/** `capstan runs diff`. */
export const diff: CommandSpec = {
  name: 'diff',
  takes: '<runId> <otherRunId>',
  summary: 'Compare two runs',
  example: 'runs diff run-0mw4x2c1h0001 run-0mw4x2c1h0002',
  async run(context, { args: [runId = '', against = ''] }) {
    const found = await (await context.client()).diffRun(runId, { against });
    context.show(found, () => diffLines(found, context.terminal.liveColumns ?? COLUMNS));
    return EXIT.done;
  },
};

function diffLines(found: Diff, width: number): string[] {
  const state = stateLines(found, width);
  return [
    found.divergedAtSeq === null ? 'The logs are the same.' : `The logs differ from event ${found.divergedAtSeq} on.`,
    ...found.eventDiffs.map(eventLine),
    ...state,
    ...(state.some((line) => line.includes('[REDACTED'))
      ? ['', '[REDACTED] stands for a value that looks like a credential. The comparison leaves such values out.']
      : []),
    ...(found.truncated
      ? ['The comparison is incomplete: a run is still active, or there are too many differences.']
      : []),
  ];
}

function eventLine({ seq, op, aEvent, bEvent }: Diff['eventDiffs'][number]): string {
  const sign = { added: '+', removed: '-', changed: '~' }[op];
  const types = [...new Set([aEvent, bEvent].flatMap((event) => (event ? [String(event.type)] : [])))].join(' -> ');
  const nodeId = aEvent?.nodeId ?? bEvent?.nodeId;
  return sanitize(`${sign} ${seq}  ${types}${nodeId === undefined ? '' : `  ${nodeId}`}`);
}

function stateLines({ a, b, stateDiff }: Diff, width: number): string[] {
  const values = differences(stateDiff, '');
  if (values.length === 0) return [];
  return [
    '',
    ...sideBySide(a, b, width),
    ...values.flatMap(({ path, left, right }) => ['', `${sanitize(path)}:`, ...sideBySide(left, right, width)]),
  ];
}

interface Difference {
  readonly path: string;
  readonly left: string;
  readonly right: string;
}

/** The values that differ, by their path: the leaves of a state diff have the sides `a` and `b`. */
function differences(value: unknown, path: string): Difference[] {
  if (!isObject(value)) return [{ path, left: '', right: textOf(value) }];
  const names = Object.keys(value);
  if (names.length > 0 && names.every((name) => name === 'a' || name === 'b' || name === 'delta')) {
    return [{ path, left: textOf(value.a), right: textOf(value.b) }];
  }
  return names.flatMap((name) => differences(value[name], path === '' ? name : `${path}.${name}`));
}

function textOf(value: unknown): string {
  if (value === undefined) return '(none)';
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}
