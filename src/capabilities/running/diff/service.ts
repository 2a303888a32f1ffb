import { LogDiff } from '../../../engine/inspection/log-diff.ts';
import { type ComparedRun, ComparedRunBuilder, diffStates, diffUsage } from '../../../engine/inspection/state-diff.ts';
import { NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { isTerminalStatus } from '../../../protocol/running/runs.ts';
import { learnStored } from '../../../runtime/recording.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { RunRow, StoredEvent } from '../../../store/log.ts';
import { Breaks } from '../../../system/breaks.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { REDACTED, redactText, redactValue } from '../../../system/redaction.ts';
import { LOG_PAGE, logPages } from '../../log-pages.ts';
import type { Caller } from '../../request.ts';

/** How two runs differ. */
interface RunComparison {
  readonly log: Pick<LogDiff, 'diffs' | 'divergedAtSeq'>;
  readonly stateDiff: JsonObject;
  /** Whether a run is still in flight, or there are more differences than are listed. */
  readonly isTruncated: boolean;
}

const BOUNDS = { diffsMax: 1_000, charactersMax: 4_000_000 };

/** Comparisons of runs. */
export class DiffService {
  readonly #runtime: Runtime;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Compares two runs up to the last events that are stored now. */
  async compare({ subject }: Caller, runId: string, against: string): Promise<RunComparison | Refusal> {
    const { reader } = this.#runtime;
    const a = await reader.row(subject, runId);
    const b = runId === against ? a : await reader.row(subject, against);
    if (!a || !b) return NOT_FOUND;
    if (a === b) return { log: { diffs: [], divergedAtSeq: null }, stateDiff: {}, isTruncated: isInFlight(a) };
    const { log, portraits } = await this.#compareLogs(a, b);
    const isTruncated = log.isTruncated || isInFlight(a) || isInFlight(b);
    return { log, stateDiff: await this.#stateDiff(log, portraits), isTruncated };
  }

  /** Reads both logs side by side, one page of each at a time. */
  async #compareLogs(a: RunRow, b: RunRow): Promise<{ log: LogDiff; portraits: [ComparedRun, ComparedRun] }> {
    const log = new LogDiff(BOUNDS);
    const [left, right] = [await this.#openLog(a), await this.#openLog(b)];
    const end = comparedEnd(a, b);
    const breaks = new Breaks(this.#runtime.clock);
    for (let start = 0; start <= Math.max(a.sequence, b.sequence); start += LOG_PAGE) {
      const [ours, theirs] = [await left.next(), await right.next()];
      for (let seq = start; seq < Math.min(start + LOG_PAGE, end); seq++) {
        log.add(seq, ours[seq - start], theirs[seq - start]);
        if (breaks.isDue) await breaks.take();
      }
    }
    return { log, portraits: [left.sitting.comparedRun(), right.sitting.comparedRun()] };
  }

  /** Redacted part by part, because states may be large. */
  async #stateDiff({ divergedAtSeq }: LogDiff, [a, b]: [ComparedRun, ComparedRun]): Promise<JsonObject> {
    const states = diffStates(a, b);
    if (divergedAtSeq === null && Object.keys(states).length === 0) return {};
    const breaks = new Breaks(this.#runtime.clock);
    const redacted: [string, unknown][] = [];
    for (const [name, value] of Object.entries({ ...states, ...diffUsage(a, b) })) {
      await breaks.take();
      redacted.push(...Object.entries(redactValue({ [name]: value }, redactWords)));
    }
    return Object.fromEntries(redacted);
  }

  /** A log that is folded while it is read; pages after its end are empty. */
  async #openLog(row: RunRow): Promise<{ sitting: ComparedRunBuilder; next(): Promise<StoredEvent[]> }> {
    const { run } = await this.#runtime.reader.load(row, -1);
    const sitting = new ComparedRunBuilder(run, sha256Hex);
    const breaks = new Breaks(this.#runtime.clock);
    const pages = logPages(this.#runtime, row);
    return {
      sitting,
      next: async () => {
        const { value: page = [] } = await pages.next();
        for (const event of page) {
          sitting.add(learnStored(run, event));
          if (breaks.isDue) await breaks.take();
        }
        return page;
      },
    };
  }
}

function isInFlight({ status }: RunRow): boolean {
  return !isTerminalStatus(status);
}

/** Sequence at which the comparison ends: events that a run in flight does not have yet are not differences. */
function comparedEnd(...rows: readonly RunRow[]): number {
  return Math.min(...rows.filter(isInFlight).map(({ sequence }) => sequence + 1), Number.POSITIVE_INFINITY);
}

/** A text with any of these words is redacted as a whole, even if it holds no credential. */
const CREDENTIAL_WORDS = /sk-|api[_-]?key|secret|bearer\s/i;

function redactWords(text: string): string {
  return CREDENTIAL_WORDS.test(text) ? REDACTED : redactText(text);
}
