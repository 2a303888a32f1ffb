import { useEffect, useRef, useState } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { GoalEvaluation } from '../../src/protocol/learning/goals.ts';
import styles from './GoalPage.module.css';

const HEIGHT = 180;
const SIZE = 9;

/** The colours of the page as they are now, because a canvas cannot use the names of the tokens. */
function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(name);
  return {
    satisfied: of('--completed'),
    open: of('--cancelled'),
    disputed: of('--failed'),
    ink: of('--ink-2'),
    line: of('--line'),
  };
}

/** How sure each verdict was, from the first to the last. A verdict without a confidence counts as fully sure. */
export function VerdictChart({ items }: { readonly items: readonly GoalEvaluation[] }) {
  const box = useRef<HTMLDivElement>(null);
  const [theme, setTheme] = useState(() => document.documentElement.dataset.theme);
  useEffect(() => {
    const watch = new MutationObserver(() => setTheme(document.documentElement.dataset.theme));
    watch.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => watch.disconnect();
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another theme means other colours
  useEffect(() => {
    const parent = box.current;
    if (!parent) return;
    const plot = new uPlot(optionsOf(items, parent.clientWidth), dataOf(items), parent);
    const resize = new ResizeObserver(() => plot.setSize({ width: parent.clientWidth, height: HEIGHT }));
    resize.observe(parent);
    return () => {
      resize.disconnect();
      plot.destroy();
    };
  }, [items, theme]);
  const satisfied = items.filter((item) => item.satisfied).length;
  const disputed = items.filter(({ disputedBy }) => disputedBy !== undefined).length;
  return (
    <figure className={styles.chart}>
      <div
        ref={box}
        role="img"
        aria-label={`${items.length} verdicts: ${satisfied} satisfied, ${disputed} disputed. The list below has each of them.`}
      />
      <figcaption className={styles.legend}>
        <span data-kind="satisfied">▲ satisfied</span>
        <span data-kind="open">● not yet</span>
        <span data-kind="disputed">✕ disputed</span>
        <span className="quiet">higher: more confident</span>
      </figcaption>
    </figure>
  );
}

function dataOf(items: readonly GoalEvaluation[]): uPlot.AlignedData {
  const oldestFirst = items.toReversed();
  return [oldestFirst.map((_item, index) => index + 1), oldestFirst.map(({ confidence = 1 }) => confidence * 100)];
}

function optionsOf(items: readonly GoalEvaluation[], width: number): uPlot.Options {
  const { ink, line } = colours();
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line } };
  return {
    width,
    height: HEIGHT,
    cursor: { show: false },
    legend: { show: false },
    scales: { x: { time: false, range: [0.5, Math.max(items.length, 4) + 0.5] }, y: { range: [0, 105] } },
    axes: [
      { ...axis, incrs: [1, 2, 5, 10, 20, 50], values: (_plot, splits) => splits.map((split) => `${split}`) },
      { ...axis, size: 52, values: (_plot, splits) => splits.map((split) => `${split} %`) },
    ],
    series: [{}, { stroke: line, width: 1, points: { show: false } }],
    hooks: { draw: [(plot) => drawMarks(plot, items.toReversed())] },
  };
}

/** A shape for each verdict, so that nobody depends on the colour. */
function drawMarks(plot: uPlot, items: readonly GoalEvaluation[]): void {
  const { ctx } = plot;
  const { satisfied, open, disputed } = colours();
  const size = (SIZE * devicePixelRatio) / 2;
  ctx.save();
  for (const [index, item] of items.entries()) {
    const x = plot.valToPos(index + 1, 'x', true);
    const y = plot.valToPos((item.confidence ?? 1) * 100, 'y', true);
    ctx.beginPath();
    if (item.satisfied) {
      ctx.moveTo(x, y - size);
      ctx.lineTo(x + size, y + size);
      ctx.lineTo(x - size, y + size);
    } else ctx.arc(x, y, size * 0.8, 0, 2 * Math.PI);
    ctx.fillStyle = item.satisfied ? satisfied : open;
    ctx.fill();
    if (item.disputedBy === undefined) continue;
    ctx.beginPath();
    const far = size * 1.8;
    ctx.moveTo(x - far, y - far);
    ctx.lineTo(x + far, y + far);
    ctx.moveTo(x + far, y - far);
    ctx.lineTo(x - far, y + far);
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.strokeStyle = disputed;
    ctx.stroke();
  }
  ctx.restore();
}
