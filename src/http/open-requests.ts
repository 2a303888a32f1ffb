/** A request that is not over yet. Few handlers ask for its signal, so its AbortController is created for the first. */
export class OpenRequest {
  /** Its index among all open requests. */
  index = 0;
  #controller: AbortController | undefined;
  #isAborted = false;

  /** Aborted when the caller goes away or the host stops. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#isAborted) this.#controller.abort();
    return this.#controller.signal;
  }

  abort(): void {
    this.#isAborted = true;
    this.#controller?.abort();
  }
}

/**
 * All open requests. This is no `Set`, because one that changes with every request keeps requests alive after their end:
 * V8 links each table that a `Set` outgrows to the next, and once one of them is in old space, a young collection follows
 * the links.
 */
export class OpenRequests {
  readonly #all: OpenRequest[] = [];

  get size(): number {
    return this.#all.length;
  }

  add(request: OpenRequest): void {
    request.index = this.#all.push(request) - 1;
  }

  /** Removes a request; the last one takes its index. */
  delete(request: OpenRequest): void {
    const last = this.#all.pop()!;
    if (last === request) return;
    last.index = request.index;
    this.#all[request.index] = last;
  }

  abortAll(): void {
    for (const request of [...this.#all]) request.abort();
  }
}
