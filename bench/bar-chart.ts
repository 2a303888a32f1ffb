/** A chart of bars as SVG, readable on light and on dark pages. */

/** One bar: its length is the middle, the line over it goes from the least to the most. */
export interface Bar {
  readonly label: string;
  readonly least: number;
  readonly middle: number;
  readonly most: number;
  /** Whether it is one of ours. */
  readonly isOwn: boolean;
}

/** How the values are shown. */
export interface BarChartOptions {
  /** Decimals of the values. */
  readonly digits: number;
  /** A value that the bars should not pass, drawn as a line through all of them. */
  readonly limit?: number;
}

const WIDTH = 760;
const LABEL_WIDTH_MIN = 170;
/** About what a character takes, with some to spare. */
const CHARACTER_WIDTH = 6.6;
const VALUE_WIDTH = 70;
const ROW = 30;
const TOP = 36;

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** Draws the bars below a title. */
export function barChart(title: string, bars: readonly Bar[], { digits, limit }: BarChartOptions): string {
  const left = labelWidth(bars);
  const longest = scaleOf(bars, limit);
  const x = (value: number): number => left + (Math.min(value, longest) / longest) * (WIDTH - left - VALUE_WIDTH);
  const rows = bars.flatMap((bar, index) => {
    const y = TOP + index * ROW;
    const middle = y + ROW / 2;
    return [
      `<text class="label" x="${left - 10}" y="${middle + 4}">${escaped(bar.label)}</text>`,
      `<rect class="${bar.isOwn ? 'own' : 'other'}" x="${left}" y="${y + 5}" width="${(x(bar.middle) - left).toFixed(1)}" height="${ROW - 10}" rx="2"/>`,
      `<path class="spread" d="M${x(bar.least).toFixed(1)} ${middle}H${x(bar.most).toFixed(1)}"/>`,
      `<text class="value" x="${(x(Math.max(bar.most, limit ?? 0)) + 8).toFixed(1)}" y="${middle + 4}">${bar.middle.toFixed(digits)}</text>`,
    ];
  });
  const bottom = TOP + bars.length * ROW;
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${bottom + (limit === undefined ? 8 : 28)}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${STYLE}</style>`,
    `<text class="title" x="${left}" y="20">${escaped(title)}</text>`,
    ...rows,
    ...(limit === undefined ? [] : limitLine(limit, x(limit), bottom)),
    '</svg>',
  ].join('\n')}\n`;
}

/** Room for the longest label. */
function labelWidth(bars: readonly Bar[]): number {
  const longest = Math.max(...bars.map(({ label }) => label.length));
  return Math.max(LABEL_WIDTH_MIN, Math.ceil(longest * CHARACTER_WIDTH) + 10);
}

/** The value at the right edge. Bars far beyond a limit are cut there, so that the others can be told apart. */
function scaleOf(bars: readonly Bar[], limit: number | undefined): number {
  const longest = Math.max(...bars.map(({ most }) => most));
  return limit === undefined ? longest : Math.min(Math.max(longest, limit), 2 * limit);
}

function limitLine(limit: number, x: number, bottom: number): string[] {
  return [
    `<path class="limit" d="M${x.toFixed(1)} ${TOP}V${bottom}"/>`,
    `<text class="limit-value" x="${x.toFixed(1)}" y="${bottom + 16}">limit ${limit}</text>`,
  ];
}

const STYLE = [
  'text{font:13px system-ui,sans-serif;fill:#57606a}',
  '.title{font-weight:600}',
  '.label{text-anchor:end}',
  '.own{fill:#3b6fd4}',
  '.other{fill:#a8b1bb}',
  '.spread{stroke:#57606a;stroke-width:2}',
  '.limit{stroke:#c93c37;stroke-width:1.5;stroke-dasharray:5 3}',
  '.limit-value{text-anchor:middle}',
  '@media(prefers-color-scheme:dark){text{fill:#c9d1d9}.own{fill:#6f9bf0}.other{fill:#6e7681}.spread{stroke:#c9d1d9}.limit{stroke:#ff7b72}}',
].join('');
