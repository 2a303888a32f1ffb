import { Inbox, Lightbulb, Play, Target } from 'lucide-react';

/** The pages of the navigation, in its order, each with its icon and its keys. */
export const PAGES = [
  { to: '/runs', title: 'Runs', keys: 'g r', Icon: Play },
  { to: '/inbox', title: 'Inbox', keys: 'g i', Icon: Inbox },
  { to: '/proposals', title: 'Proposals', keys: 'g p', Icon: Lightbulb },
  { to: '/goals', title: 'Goals', keys: 'g o', Icon: Target },
] as const;
