import { type CollectedSpan, withoutAppends } from './collector.ts';

/** Draws a trace that a collector has received as tracing systems show it: a bar for each span, below its parent. */

const ROW = 24;
const NAMES = 430;
const BARS = 470;
const TOP = 34;
const PADDING = 16;
/** Room for the milliseconds of a bar that reaches the end. */
const LABEL = 28;
/** The shortest bar that can be seen. */
const BAR_MIN = 3;

interface Row {
  readonly span: CollectedSpan;
  readonly depth: number;
}

/** The picture as SVG. The trace may hold the span of its caller only by its id. */
export function pictureOf(spans: readonly CollectedSpan[], title: string): string {
  const rows = rowsOf(withoutAppends(spans));
  const start = Math.min(...rows.map(({ span }) => span.startMs));
  const total = Math.max(1, ...rows.map(({ span }) => span.endMs - start));
  const width = NAMES + BARS + LABEL + 2 * PADDING;
  const height = TOP + rows.length * ROW + PADDING;
  const drawn = rows.map((row, index) => rowText(row, TOP + index * ROW, { start, total }));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    '<style>text{font:12px ui-monospace,monospace;fill:#1f2937}.ms{fill:#6b7280}.scale{fill:#6b7280;font-size:11px}</style>',
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text class="scale" x="${PADDING + NAMES}" y="20">milliseconds</text>`,
    `<text class="scale" x="${PADDING + NAMES + BARS}" y="20" text-anchor="end">${total}</text>`,
    ...drawn,
    '</svg>',
    '',
  ].join('\n');
}

function rowsOf(spans: readonly CollectedSpan[]): Row[] {
  const ids = new Set(spans.map(({ spanId }) => spanId));
  const inOrder = [...spans].sort((a, b) => a.startMs - b.startMs || b.endMs - a.endMs);
  const under = (parent: CollectedSpan | undefined, depth: number): Row[] =>
    inOrder
      .filter((span) => (parent ? span.parentSpanId === parent.spanId : !ids.has(span.parentSpanId)))
      .flatMap((span) => [{ span, depth }, ...under(span, depth + 1)]);
  return under(undefined, 0);
}

function rowText({ span, depth }: Row, y: number, { start, total }: { start: number; total: number }): string {
  const left = PADDING + NAMES + ((span.startMs - start) / total) * BARS;
  const length = Math.max(BAR_MIN, ((span.endMs - span.startMs) / total) * BARS);
  const x = Math.min(left, PADDING + NAMES + BARS - length);
  const isLate = x > PADDING + NAMES + BARS / 2;
  const labelX = isLate ? x - 5 : x + length + 5;
  return [
    `<text x="${PADDING + depth * 14}" y="${y + 16}">${escaped(span.name)}</text>`,
    `<rect x="${x.toFixed(1)}" y="${y + 6}" width="${length.toFixed(1)}" height="12" rx="2" fill="${colourOf(span)}"/>`,
    `<text class="ms" x="${labelX.toFixed(1)}" y="${y + 16}"${isLate ? ' text-anchor="end"' : ''}>${span.endMs - span.startMs}</text>`,
  ].join('');
}

function colourOf({ name, status }: CollectedSpan): string {
  if (status === 2) return '#dc2626';
  if (name === 'openwop.run') return '#4f46e5';
  if (name === 'openwop.interrupt') return '#f59e0b';
  return name.startsWith('openwop.activity.') ? '#0d9488' : '#94a3b8';
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
