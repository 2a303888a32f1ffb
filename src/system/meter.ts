/** How an attempt to deliver an event to a webhook can go: `dead` is a dead letter, after the last retry. */
export const DELIVERY_OUTCOMES = ['delivered', 'retried', 'dead'] as const;

/** What the parts of a host report to its operators. The edge turns it into metrics; nothing reads it back. */
export interface Meter {
  /** A transaction of the store has ended. */
  committed(transaction: { readonly units: number; readonly ms: number; readonly isFailed: boolean }): void;
  /** This host found that another one has taken a work item over. */
  leaseLost(): void;
  /** Work items of hosts that died went back to the queue. */
  takenOver(items: number): void;
  /** A webhook delivery was attempted. */
  delivered(outcome: (typeof DELIVERY_OUTCOMES)[number]): void;
}

/** For whoever has no operators: tests, simulations and commands that open a store. */
export const NO_METER: Meter = {
  committed: () => {},
  leaseLost: () => {},
  takenOver: () => {},
  delivered: () => {},
};
