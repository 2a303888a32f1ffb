import { ChartLine, Inbox, Lightbulb, Play, Settings, Target, Workflow } from 'lucide-react';

/** The pages of the navigation, in its order, each with its icon and its keys. */
export const PAGES = [
  { to: '/runs', title: 'Runs', keys: 'g r', Icon: Play },
  { to: '/inbox', title: 'Inbox', keys: 'g i', Icon: Inbox },
  { to: '/proposals', title: 'Proposals', keys: 'g p', Icon: Lightbulb },
  { to: '/goals', title: 'Goals', keys: 'g o', Icon: Target },
  { to: '/workflows', title: 'Workflows', keys: 'g w', Icon: Workflow },
  { to: '/quality', title: 'Quality', keys: 'g q', Icon: ChartLine },
  { to: '/operations', title: 'Operations', keys: 'g s', Icon: Settings },
] as const;
