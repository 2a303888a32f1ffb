const WHOLE = new Intl.NumberFormat();
const COMPACT = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 });
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;
const STEP = 1_024;
/** Less than a cent is shown to more places. */
const CENT = 0.01;

/** A number of things. */
export function count(value: number): string {
  return WHOLE.format(value);
}

/** A number of things with their name, of which there may be one. */
export function counted(value: number, one: string, several = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : several}`;
}

/** A large number of things, such as tokens, in little room. */
export function compact(value: number): string {
  return COMPACT.format(value);
}

/** A number of bytes. */
export function bytes(value: number): string {
  const power = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, value)) / 10)));
  const amount = value / STEP ** power;
  return `${amount < 10 && power > 0 ? amount.toFixed(1).replace(/\.0$/, '') : Math.round(amount)} ${UNITS[power]}`;
}

/** An amount of money in US dollars. */
export function dollars(usd: number): string {
  return `$${usd.toFixed(usd > 0 && usd < CENT ? 4 : 2)}`;
}
