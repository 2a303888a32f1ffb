import { describe, expect, it } from 'vitest';
import { Instrument } from './instruments.ts';

describe('an instrument', () => {
  it('counts by its labels', () => {
    const runs = new Instrument('runs', { help: 'Runs', unit: '1', labels: ['workflow', 'tenant'] });
    runs.add(1, 'wf', 'alpha');
    runs.add(2, 'wf', 'alpha');
    runs.add(1, 'wf', 'beta');
    expect(runs.read()).toMatchObject({
      kind: 'counter',
      points: [
        { labels: { workflow: 'wf', tenant: 'alpha' }, value: 3 },
        { labels: { workflow: 'wf', tenant: 'beta' }, value: 1 },
      ],
    });
  });

  it('tells series apart by each label, whatever characters it has', () => {
    const runs = new Instrument('runs', { help: 'Runs', unit: '1', labels: ['status', 'workflow', 'tenant'] });
    runs.add(1, 'a\nb', 'c', 'd');
    runs.add(2, 'a', 'b\nc', 'd');
    runs.add(4, 'a', 'b\nc', 'e');
    expect(runs.read().points.map(({ value }) => value)).toEqual([1, 2, 4]);
  });

  it('puts what it measures into buckets, up to and with their bounds', () => {
    const times = new Instrument('times', { help: 'Times', unit: 's', labels: [], buckets: [1, 5] });
    for (const seconds of [0.5, 1, 2, 7]) times.add(seconds);
    expect(times.read().points).toEqual([{ labels: {}, value: { bounds: [1, 5], counts: [2, 1, 1], sum: 10.5 } }]);
  });

  it('counts together what is beyond two thousand series', () => {
    const runs = new Instrument('runs', { help: 'Runs', unit: '1', labels: ['workflow'] });
    for (let count = 0; count < 2_500; count++) runs.add(1, `wf-${count}`);
    runs.add(1, 'wf-0');
    const { points } = runs.read();
    expect(points).toHaveLength(2_001);
    expect(points[0]).toEqual({ labels: { workflow: 'wf-0' }, value: 2 });
    expect(points.at(-1)).toEqual({ labels: { 'otel.metric.overflow': true }, value: 500 });
  });

  it('shows no label that looks like a secret', () => {
    const token = `ghp_${'a1B2c3D4e5F6'.repeat(3)}`;
    const runs = new Instrument('runs', { help: 'Runs', unit: '1', labels: ['workflow'] });
    runs.add(1, token);
    expect(JSON.stringify(runs.read())).not.toContain(token);
  });
});
