import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../test/support/manual-clock.ts';
import { Watchdog } from './watchdog.ts';

describe('the watchdog', () => {
  const watched = () => {
    const clock = new ManualClock();
    const watchdog = new Watchdog(clock);
    const blocked: [string, number][] = [];
    watchdog.start(200, (operation, ms) => blocked.push([operation, ms]));
    return { clock, watchdog, blocked };
  };

  it('names what was noted last before the loop stood still, and for how long', () => {
    const { clock, watchdog, blocked } = watched();
    watchdog.note('node core.noop');
    watchdog.note('node core.slow');
    clock.advance(450);
    watchdog.note('POST /v1/runs');
    expect(blocked).toEqual([['node core.slow', 450]]);
  });

  it('says nothing of a loop that turns, however long nothing is noted', () => {
    const { clock, watchdog, blocked } = watched();
    watchdog.note('drive');
    for (let tick = 0; tick < 20; tick++) clock.advance(100);
    expect(blocked).toEqual([]);
  });

  it('reports what nobody noted as other, and nothing once it is stopped', () => {
    const { clock, watchdog, blocked } = watched();
    clock.advance(100);
    clock.advance(500);
    watchdog.note('drive');
    expect(blocked).toEqual([['other', 400]]);
    watchdog.stop();
    clock.advance(500);
    watchdog.note('drive');
    expect(blocked).toHaveLength(1);
  });
});
