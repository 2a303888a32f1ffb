/** The parts of an event, besides its payload, that change the state. */
export interface Envelope {
  readonly time: number;
  readonly nodeId: string | undefined;
  readonly eventId: string;
}
