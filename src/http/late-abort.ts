/**
 * An `AbortController` that makes its signal when somebody asks for it. Most requests are answered before anybody does,
 * and a signal costs as much as a small statement of the store.
 */
export class LateAbort {
  #controller: AbortController | undefined;
  #isAborted = false;

  abort(): void {
    this.#isAborted = true;
    this.#controller?.abort();
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#isAborted) this.#controller.abort();
    }
    return this.#controller.signal;
  }
}
