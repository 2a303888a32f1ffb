/**
 * The milliseconds of a timestamp. Most events of an append, and many of others, have the same one, and parsing it is what
 * counting them would cost most, so the last one is remembered.
 */
export const timeOf: (timestamp: string) => number = remembered(Date.parse);

function remembered(parse: (text: string) => number): (text: string) => number {
  let last = '';
  let ms = Number.NaN;
  return (text) => {
    if (text !== last) {
      ms = parse(text);
      last = text;
    }
    return ms;
  };
}
