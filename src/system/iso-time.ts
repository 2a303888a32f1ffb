/** The last time that was written. Most of what is written at once has the same time, and to write one takes a microsecond. */
const last = { time: 0, text: new Date(0).toISOString() };

/** A time in epoch milliseconds, as ISO 8601 text in UTC. */
export function isoTime(time: number): string {
  if (time !== last.time) {
    last.text = new Date(time).toISOString();
    last.time = time;
  }
  return last.text;
}
