import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../test/support/manual-clock.ts';
import { type Clock, CorrectedClock } from './clock.ts';
import { Watchdog } from './watchdog.ts';

describe('the watchdog', () => {
  const watched = (clock = new ManualClock(), seen: Clock = clock) => {
    const watchdog = new Watchdog(seen);
    const blocked: [string, number][] = [];
    const late: number[] = [];
    watchdog.start(200, {
      onBlocked: (operation, ms) => blocked.push([operation, ms]),
      onTick: (lateMs) => late.push(lateMs),
    });
    return { clock, watchdog, blocked, late };
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
    for (let tenth = 0; tenth < 50; tenth++) clock.advance(100);
    watchdog.note('POST /v1/runs');
    for (let tenth = 0; tenth < 15; tenth++) clock.advance(100);
    watchdog.note('drive');
    expect(blocked).toEqual([]);
  });

  it('reports what nobody noted as other, and nothing once it is stopped', () => {
    const { clock, watchdog, blocked } = watched();
    clock.advance(1_400);
    watchdog.note('drive');
    expect(blocked).toEqual([['other', 400]]);
    watchdog.stop();
    clock.advance(500);
    watchdog.note('drive');
    expect(blocked).toHaveLength(1);
  });

  it('says at each tick by how much it was late', () => {
    const { clock, watchdog, late } = watched();
    clock.advance(1_000);
    expect(late).toEqual([0]);
    watchdog.note('drive');
    clock.advance(130);
    expect(late).toEqual([0, 30]);
  });

  it('says so too of a tick that a note overtakes', () => {
    const { clock, watchdog, late } = watched();
    clock.after(900, () => watchdog.note('drive'));
    clock.advance(1_400);
    expect(late).toEqual([400]);
  });

  it('is not misled by somebody who puts the clock right', () => {
    const own = new ManualClock();
    const clock = new CorrectedClock(own);
    const { blocked, late } = watched(own, clock);
    clock.offsetMs = 5_000;
    own.advance(1_000);
    expect({ blocked, late }).toEqual({ blocked: [], late: [0] });
  });
});
