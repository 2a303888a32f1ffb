import { webhooks } from './deliveries.ts';
import { summary } from './feedback.ts';
import type { GrowthBench } from './growth.ts';
import { events, forks, replays } from './histories.ts';
import { lists, retries } from './requests.ts';
import { fanOut, forEachItem, steps, tree } from './shapes.ts';
import { subscribers } from './subscribers.ts';
import { habits } from './synthesis.ts';
import { manyRuns, tenants } from './tenants.ts';
import { approvals } from './waiting.ts';

/** Everything whose growth is measured, in the order of the page. */
export const WORKLOADS: readonly GrowthBench[] = [
  steps,
  fanOut,
  forEachItem,
  tree,
  events,
  forks,
  replays,
  manyRuns,
  tenants,
  approvals,
  retries,
  webhooks,
  subscribers,
  lists,
  summary,
  habits,
];
