import { type InterruptRow, listOpen } from '../../src/capabilities/people/interrupts/records.ts';
import { TOKEN_BEARER } from '../../src/capabilities/people/interrupts/rules.ts';
import type { Caller } from '../../src/capabilities/request.ts';
import { isRefusal, type Refusal } from '../../src/protocol/errors.ts';
import { isObject } from '../../src/protocol/format/json.ts';
import type { RunEvent } from '../../src/protocol/running/events.ts';
import { type Change, perform, UnitRefused } from '../../src/runtime/change.ts';
import type { MovedRun } from '../../src/runtime/move-run.ts';
import { StoreFailure } from '../../src/store/store.ts';
import type { SimHost } from './sim-host.ts';
import type { World } from './world.ts';

/** Something that somebody said, under a word that nobody else uses. */
interface Said {
  readonly word: string;
  readonly runId: string;
  readonly nodeId: string;
  value?: unknown;
  token?: string | undefined;
  isAcknowledged: boolean;
}

const SEEN_AT_ONCE = 30;
const PATIENCE_MS = 15_000;
/** Events in which what somebody said stands for the first time. */
const HEARD: readonly string[] = ['approval.received', 'approval.granted', 'approval.rejected', 'interrupt.resolved'];

/** People who answer what runs ask: late, again, several at once and on several hosts, by name and by token. */
export class Answers {
  readonly #world: World;
  readonly #caller: Caller;
  readonly #hosts: readonly SimHost[];
  readonly #isStorm: () => boolean;
  readonly #said: Said[] = [];

  constructor(world: World, caller: Caller, hosts: readonly SimHost[], isStorm: () => boolean) {
    this.#world = world;
    this.#caller = caller;
    this.#hosts = hosts;
    this.#isStorm = isStorm;
  }

  get acknowledged(): number {
    return this.#said.filter(({ isAcknowledged }) => isAcknowledged).length;
  }

  /** Looks into the inbox of some host, and lets one or several people answer something of it. */
  async answerSomething(): Promise<void> {
    const { random } = this.#world;
    const open = listOpen(this.#caller.subject.tenant, undefined, undefined, SEEN_AT_ONCE);
    const rows = await this.#try(this.#pick(), ({ store }) => store.read<InterruptRow>(open));
    if (!rows || rows.length === 0) return;
    const row = random.pick(rows);
    const people = random.pick([1, 1, 1, 2, 4]);
    for (let count = 0; count < people; count++) void this.#answer(row);
  }

  /** Says the same until it is answered, with the same key each time, as a good client does. */
  async #answer(row: InterruptRow): Promise<void> {
    const { random } = this.#world;
    const word = `word-${this.#said.length}`;
    const said: Said = { word, runId: row.run_id, nodeId: row.node_id, isAcknowledged: false };
    this.#said.push(said);
    said.value = this.#valueFor(row, word);
    said.token = random.chance(0.3) && row.is_gate === 0 ? await this.#token(row) : undefined;
    // People take their time, and what they answer may be over by then.
    if (random.chance(0.3)) await this.#world.sleep(random.between(0, 10_000));
    while (this.#isStorm()) {
      const once = (): Promise<'taken' | 'refused' | undefined> =>
        this.#try(this.#pick(), (host) => this.#send(host, said));
      // Now and then the client is impatient, and both of its requests arrive.
      const outcomes = await Promise.all(random.chance(0.1) ? [once(), once()] : [once()]);
      if (outcomes.includes('taken')) said.isAcknowledged = true;
      if (outcomes.some((outcome) => outcome !== undefined) && !random.chance(0.2)) return;
      await this.#world.sleep(random.between(10, 1_000));
    }
  }

  async #send(host: SimHost, said: Said): Promise<'taken' | 'refused' | undefined> {
    const { word, runId, nodeId, value, token } = said;
    // Everybody uses the same key for a question: each must be answered for themselves.
    const key = `${runId}/${nodeId}`;
    const ticket = await host.idempotency.begin({ scope: word, operation: 'answer', key, content: value });
    if (isRefusal(ticket)) return undefined;
    if ('replay' in ticket) return 'taken';
    const record = (outcome: MovedRun) => ticket.record({ status: 200, body: outcome });
    try {
      const caller: Caller = {
        ...this.#caller,
        role: 'reviewer',
        subject: { ...this.#caller.subject, principal: word },
      };
      const decide = (): Promise<Change<MovedRun> | Refusal> =>
        token ? host.interrupts.resolveByToken(token, value) : host.interrupts.resolve(caller, runId, nodeId, value);
      const outcome = await perform(host.runtime, decide, { mutexKey: runId, record });
      if (!isRefusal(outcome)) return 'taken';
      return (await ticket.recall()) ? 'taken' : 'refused';
    } catch (error) {
      if (error instanceof UnitRefused && error.failedExpectation === 'idempotency') return 'taken';
      throw error;
    } finally {
      ticket.done();
    }
  }

  async #token({ run_id, node_id, interrupt_id }: InterruptRow): Promise<string | undefined> {
    return this.#try(this.#pick(), (host) =>
      host.interrupts.mint(this.#caller, run_id, { nodeId: node_id, interruptId: interrupt_id }),
    );
  }

  #valueFor({ kind, is_gate }: InterruptRow, word: string): unknown {
    const { random } = this.#world;
    if (is_gate === 1) return { decision: random.pick(['granted', 'granted', 'rejected']), reason: word };
    if (kind === 'approval') {
      const action = random.pick(['accept', 'accept', 'reject', 'refine']);
      return { action, feedback: word, refineFeedback: { scope: 'whole' }, voter: `voter-${random.between(1, 4)}` };
    }
    return { id: 1, word };
  }

  #pick(): SimHost {
    return this.#world.random.pick(this.#hosts);
  }

  /** Undefined when the host could not be reached, or could not say in time. */
  async #try<T>(host: SimHost, ask: (host: SimHost) => Promise<T>): Promise<T | undefined> {
    if (host.store.state !== 'connected') return undefined;
    try {
      return await Promise.race([ask(host), this.#world.sleep(PATIENCE_MS).then(() => undefined)]);
    } catch (error) {
      if (error instanceof StoreFailure) return undefined;
      throw error;
    }
  }

  /** What was acknowledged is in the log, once; what was not may be, and not more often. */
  problemsWith(runId: string, events: readonly RunEvent[]): string[] {
    return this.#said
      .filter((said) => said.runId === runId)
      .flatMap((said) => {
        const { word, isAcknowledged } = said;
        const heard = events.filter((event) => HEARD.includes(event.type) && says(event, word)).length;
        if (heard > 1) return [`${word} was said once and heard ${heard} times`];
        const isLost = isAcknowledged && heard === 0 && !events.some((event) => isSameVote(event, said));
        return isLost ? [`${word} was acknowledged and is lost`] : [];
      });
  }
}

/** All tokens are one voter, and what a voter says again changes nothing. */
function isSameVote({ type, payload }: RunEvent, { nodeId, value, token }: Said): boolean {
  if (type !== 'approval.received' || token === undefined || payload.nodeId !== nodeId) return false;
  return payload.decidedBy === TOKEN_BEARER.principal && isObject(value) && payload.action === value.action;
}

/** An approval's resolution repeats the vote that decided it. */
function says({ type, payload }: RunEvent, word: string): boolean {
  if (type === 'interrupt.resolved' && payload.kind === 'approval') return false;
  return JSON.stringify(payload).includes(`"${word}"`);
}
