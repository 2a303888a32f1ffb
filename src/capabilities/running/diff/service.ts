import { LogDiff } from '../../../engine/inspection/log-diff.ts';
import { diffEfforts, diffStates, type Portrait, Sitting } from '../../../engine/inspection/state-diff.ts';
import { NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { isTerminalStatus } from '../../../protocol/running/runs.ts';
import { decodeEvent } from '../../../runtime/recording.ts';
import type { RunRow, StoredEvent } from '../../../store/log.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { REDACTED, redactText, redactValue } from '../../../system/redaction.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import { LOG_PAGE, logPages } from '../../log-pages.ts';
import type { Caller } from '../../request.ts';

export type DiffService = ReturnType<typeof diffService>;

export interface RunComparison {
  readonly log: Pick<LogDiff, 'diffs' | 'divergedAtSeq'>;
  readonly stateDiff: JsonObject;
  /** A run was in flight, or more differs than is told. */
  readonly isTruncated: boolean;
}

const BOUNDS = { diffsMax: 1_000, charactersMax: 4_000_000 };

export function diffService({ runtime }: Host) {
  const { reader } = runtime;

  return {
    /** How one run differs from another, as far as both logs have come. */
    async compare(caller: Caller, runId: string, against: string): Promise<RunComparison | Refusal> {
      const a = await reader.row(caller.subject, runId);
      const b = runId === against ? a : await reader.row(caller.subject, against);
      if (!a || !b) return NOT_FOUND;
      if (a === b) return { log: { diffs: [], divergedAtSeq: null }, stateDiff: {}, isTruncated: isInFlight(a) };
      const { log, portraits } = await read(a, b);
      return {
        log,
        stateDiff: stateDiff(log, portraits),
        isTruncated: log.isCut || isInFlight(a) || isInFlight(b),
      };
    },
  };

  /** Both logs side by side, page by page. */
  async function read(a: RunRow, b: RunRow): Promise<{ log: LogDiff; portraits: [Portrait, Portrait] }> {
    const log = new LogDiff(BOUNDS);
    const [left, right] = [await open(a), await open(b)];
    const end = comparedEnd(a, b);
    for (let start = 0; start <= Math.max(a.sequence, b.sequence); start += LOG_PAGE) {
      const [ours, theirs] = [await left.next(), await right.next()];
      for (let seq = start; seq < Math.min(start + LOG_PAGE, end); seq++) {
        log.add(seq, ours[seq - start], theirs[seq - start]);
      }
    }
    return { log, portraits: [left.sitting.portrait(), right.sitting.portrait()] };
  }

  /** A log that is folded as it is read; pages past its end are empty. */
  async function open(row: RunRow): Promise<{ sitting: Sitting; next(): Promise<StoredEvent[]> }> {
    const { run } = await reader.fresh(row, -1);
    const sitting = new Sitting(run, sha256Hex);
    const pages = logPages(runtime, row);
    return {
      sitting,
      next: async () => {
        const { value: page = [] } = await pages.next();
        for (const event of page) sitting.add(decodeEvent(event));
        return page;
      },
    };
  }
}

function isInFlight({ status }: RunRow): boolean {
  return !isTerminalStatus(status);
}

/** What a run in flight has not come to yet is no difference. */
function comparedEnd(...rows: readonly RunRow[]): number {
  return Math.min(...rows.filter(isInFlight).map(({ sequence }) => sequence + 1), Number.POSITIVE_INFINITY);
}

function stateDiff({ divergedAtSeq }: LogDiff, [a, b]: [Portrait, Portrait]): JsonObject {
  const states = diffStates(a, b);
  const isSame = divergedAtSeq === null && Object.keys(states).length === 0;
  return isSame ? {} : redactValue({ ...states, ...diffEfforts(a, b) }, redactWords);
}

/** Not even a word that goes with credentials may stand in here, innocent as it may be. */
const CREDENTIAL_WORDS = /sk-|api[_-]?key|secret|bearer\s/i;

function redactWords(text: string): string {
  return CREDENTIAL_WORDS.test(text) ? REDACTED : redactText(text);
}
