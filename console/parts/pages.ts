import { ChartLine, Play, Settings, Workflow } from 'lucide-react';

/** The pages of the navigation, in its order, each with its icon and its keys. */
export const PAGES = [
  { to: '/runs', title: 'Runs', keys: 'g r', Icon: Play },
  { to: '/workflows', title: 'Workflows', keys: 'g w', Icon: Workflow },
  { to: '/quality', title: 'Quality', keys: 'g q', Icon: ChartLine },
  { to: '/operations', title: 'Operations', keys: 'g s', Icon: Settings },
] as const;
