import type { NewEvent } from '../../../protocol/running/events.ts';
import type { Configurable } from '../../../protocol/running/runs.ts';

/** About 512 tokens. */
const SUMMARY_CHARACTERS_MAX = 2_000;

/** The reasoning of one answer while it streams: each piece is a delta, and the whole of them closes the block. */
export class ReasoningStream {
  readonly #agentId: string;
  readonly #verbosity: Configurable['reasoningVerbosity'];
  readonly #tell: (event: NewEvent) => void;
  #text = '';
  #sequence = 0;

  constructor(
    agentId: string,
    { reasoningVerbosity }: Pick<Configurable, 'reasoningVerbosity'>,
    tell: (event: NewEvent) => void,
  ) {
    this.#agentId = agentId;
    this.#verbosity = reasoningVerbosity;
    this.#tell = tell;
  }

  /** Records a piece, as far as the log may hold it. */
  add(piece: string): void {
    const whole = keptOf(this.#text + piece, this.#verbosity);
    const delta = whole.slice(this.#text.length);
    if (delta === '') return;
    this.#text = whole;
    const payload = { agentId: this.#agentId, delta, sequence: this.#sequence++ };
    this.#tell({ type: 'agent.reasoning.delta', payload });
  }

  /** Records the whole, unless there was nothing. */
  close(): void {
    const event = reasoned(this.#agentId, this.#text, this.#verbosity);
    if (event) this.#tell(event);
  }
}

/** The event that records a reasoning, as far as the run wants it in its log. */
export function reasoned(
  agentId: string,
  text: string | undefined,
  verbosity: Configurable['reasoningVerbosity'] = 'summary',
): NewEvent | undefined {
  const reasoning = keptOf(text ?? '', verbosity);
  return reasoning === '' ? undefined : { type: 'agent.reasoned', payload: { agentId, reasoning, verbosity } };
}

function keptOf(text: string, verbosity: Configurable['reasoningVerbosity'] = 'summary'): string {
  if (verbosity === 'off') return '';
  return verbosity === 'full' ? text : text.slice(0, SUMMARY_CHARACTERS_MAX).toWellFormed();
}
