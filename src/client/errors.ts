/** The host rejected the request; `code` and `details` come from its error envelope. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  readonly status: number;
  readonly code: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** The value of `Retry-After`, if the host sent one. */
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

/** No reply after all retries. The request may have been executed; retrying with the same idempotency key is safe. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

/** The discovery document does not list the capability, so no request was sent. */
export class NotProvidedError extends Error {
  override readonly name = 'NotProvidedError';
  readonly capability: string;

  constructor(capability: string) {
    super(`This host does not support ${capability}: its discovery document does not list it.`);
    this.capability = capability;
  }
}
