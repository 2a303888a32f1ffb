import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import styles from './Quality.module.css';

/** A line of a chart. */
export interface Line {
  readonly title: string;
  /** The name of a colour of ours. */
  readonly colour: string;
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  readonly title: string;
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly show: (value: number) => string;
  readonly isShare?: boolean;
  /** The values are whole numbers, so the axis has no others. */
  readonly isCount?: boolean;
  /** The axis reaches at least so far. */
  readonly least?: number;
  /** A point was clicked. */
  readonly onPoint: (index: number) => void;
}

const HEIGHT = 180;
const AXIS = 56;
/** Distances of the marks on an axis of whole numbers: 1, 2, 5, 10, 20 and so on. */
const WHOLE_STEPS = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();

/** Lines over time. Each point leads to the runs behind it; the table of the page does the same for the keyboard. */
export function Chart({ title, times, lines, show, isShare = false, isCount = false, least = 1, onPoint }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const latest = useRef(onPoint);
  latest.current = onPoint;
  useEffect(() => {
    const parent = box.current;
    if (!parent) return;
    const draw = (): uPlot => {
      const colour = (name: string): string => getComputedStyle(parent).getPropertyValue(`--${name}`).trim();
      const font = `12px ${colour('font-text')}`;
      const axis = {
        font,
        stroke: colour('ink-3'),
        grid: { stroke: colour('line'), width: 1 },
        ticks: { show: false },
      };
      return new uPlot(
        {
          width: parent.clientWidth,
          height: HEIGHT,
          legend: { show: false },
          cursor: { y: false, points: { size: 8 } },
          scales: { y: { range: (_plot, _min, max) => [0, isShare ? 1 : Math.max(max ?? 0, least) || 1] } },
          axes: [
            axis,
            {
              ...axis,
              size: AXIS,
              values: (_plot, values) => values.map(show),
              ...(isCount ? { incrs: WHOLE_STEPS } : {}),
            },
          ],
          series: [
            {},
            ...lines.map((line) => ({
              label: line.title,
              stroke: colour(line.colour),
              width: 2,
              spanGaps: true,
              points: { show: true, size: 6, fill: colour(line.colour) },
            })),
          ],
          hooks: { ready: [(plot) => plot.over.addEventListener('click', () => clicked(plot))] },
        },
        [times.map((time) => time / 1_000), ...lines.map(({ values }) => [...values])],
        parent,
      );
    };
    const clicked = ({ cursor }: uPlot): void => {
      if (cursor.idx != null) latest.current(cursor.idx);
    };
    let plot = draw();
    const redraw = (): void => {
      plot.destroy();
      plot = draw();
    };
    const resized = new ResizeObserver(() => plot.setSize({ width: parent.clientWidth, height: HEIGHT }));
    resized.observe(parent);
    const themed = new MutationObserver(redraw);
    themed.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      resized.disconnect();
      themed.disconnect();
      plot.destroy();
    };
  }, [times, lines, show, isShare, isCount, least]);
  return (
    <figure className={styles.figure} aria-label={title}>
      <figcaption className={styles.caption}>
        {lines.map((line) => (
          <span key={line.title} className={styles.key}>
            <span className={styles.swatch} style={{ background: `var(--${line.colour})` }} aria-hidden="true" />
            {line.title}
          </span>
        ))}
      </figcaption>
      <div ref={box} className={styles.chart} />
    </figure>
  );
}
