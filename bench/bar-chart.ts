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

const WIDTH = 760;
const LABEL_WIDTH = 170;
const VALUE_WIDTH = 70;
const ROW = 30;
const TOP = 36;

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** Draws the bars below a title. */
export function barChart(title: string, bars: readonly Bar[], digits: number): string {
  const longest = Math.max(...bars.map(({ most }) => most));
  const x = (value: number): number => LABEL_WIDTH + (value / longest) * (WIDTH - LABEL_WIDTH - VALUE_WIDTH);
  const rows = bars.flatMap((bar, index) => {
    const y = TOP + index * ROW;
    const middle = y + ROW / 2;
    return [
      `<text class="label" x="${LABEL_WIDTH - 10}" y="${middle + 4}">${escaped(bar.label)}</text>`,
      `<rect class="${bar.isOwn ? 'own' : 'other'}" x="${LABEL_WIDTH}" y="${y + 5}" width="${(x(bar.middle) - LABEL_WIDTH).toFixed(1)}" height="${ROW - 10}" rx="2"/>`,
      `<path class="spread" d="M${x(bar.least).toFixed(1)} ${middle}H${x(bar.most).toFixed(1)}"/>`,
      `<text class="value" x="${(x(bar.most) + 8).toFixed(1)}" y="${middle + 4}">${bar.middle.toFixed(digits)}</text>`,
    ];
  });
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${TOP + bars.length * ROW + 8}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${STYLE}</style>`,
    `<text class="title" x="${LABEL_WIDTH}" y="20">${escaped(title)}</text>`,
    ...rows,
    '</svg>',
  ].join('\n')}\n`;
}

const STYLE = [
  'text{font:13px system-ui,sans-serif;fill:#57606a}',
  '.title{font-weight:600}',
  '.label{text-anchor:end}',
  '.own{fill:#3b6fd4}',
  '.other{fill:#a8b1bb}',
  '.spread{stroke:#57606a;stroke-width:2}',
  '@media(prefers-color-scheme:dark){text{fill:#c9d1d9}.own{fill:#6f9bf0}.other{fill:#6e7681}.spread{stroke:#c9d1d9}}',
].join('');
