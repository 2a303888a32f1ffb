/** The host said no: its code and details, to program against. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  readonly status: number;
  readonly code: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** How long the host asks to be left alone. */
  readonly retryAfterMs: number | undefined;

  constructor(answer: {
    readonly status: number;
    readonly code: string;
    readonly message: string;
    readonly details?: Readonly<Record<string, unknown>>;
    readonly retryAfterMs?: number | undefined;
  }) {
    super(answer.message);
    this.status = answer.status;
    this.code = answer.code;
    this.details = answer.details ?? {};
    this.retryAfterMs = answer.retryAfterMs;
  }
}

/** Nothing came back, however often it was tried. Whether something was done is not known; a retry is safe. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

/** The host does not show in its discovery document that it serves this, so it was not asked. */
export class NotProvidedError extends Error {
  override readonly name = 'NotProvidedError';
  readonly capability: string;

  constructor(capability: string) {
    super(`This host does not serve ${capability}: its discovery document does not show it.`);
    this.capability = capability;
  }
}
