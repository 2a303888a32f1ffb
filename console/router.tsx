import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router';
import { SIGN_IN_PROBLEMS, type SignInProblem } from '../src/protocol/operations/console-header.ts';
import { consoleRoot } from './api/client.ts';
import { isSignedOut, onSignedOut, queries } from './api/queries.ts';
import { sessionQuery } from './api/session.ts';
import { type GoalSearch, type GoalsSearch, readGoalSearch, readGoalsSearch } from './goals/search.ts';
import { type InboxSearch, readInboxSearch } from './inbox/search.ts';
import { type OperationsSearch, readOperationsSearch } from './operations/search.ts';
import { loaded } from './parts/loaded.ts';
import { Shell } from './parts/Shell.tsx';
import { Problem, Skeleton } from './parts/States.tsx';
import {
  type ProposalSearch,
  type ProposalsSearch,
  readProposalSearch,
  readProposalsSearch,
} from './proposals/search.ts';
import { type QualitySearch, readQualitySearch } from './quality/search.ts';
import { type RunSearch, type RunsSearch, readRunSearch, readRunsSearch } from './runs/search.ts';
import { type EditSearch, readEditSearch, readWorkflowSearch, type WorkflowSearch } from './workflows/search.ts';

const root = createRootRoute({
  errorComponent: ({ error }) => <Problem error={error} onRetry={() => location.reload()} />,
});

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: (search: Record<string, unknown>): { next?: string; problem?: SignInProblem } => {
    const problem = SIGN_IN_PROBLEMS.find((known) => known === search.problem);
    return { ...(typeof search.next === 'string' && { next: search.next }), ...(problem && { problem }) };
  },
  component: lazyRouteComponent(() => loaded(() => import('./start/SignIn.tsx')), 'SignIn'),
});

/** Everything but signing in is for people who are signed in. */
const shell = createRoute({
  getParentRoute: () => root,
  id: 'shell',
  component: Shell,
  beforeLoad: async ({ location }) => {
    try {
      await queries.ensureQueryData(sessionQuery);
    } catch (error) {
      if (!isSignedOut(error)) throw error;
      throw redirect({ to: '/sign-in', search: { next: location.href } });
    }
  },
});

const home = createRoute({
  getParentRoute: () => shell,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/runs', search: {} });
  },
});

const runs = createRoute({
  getParentRoute: () => shell,
  path: '/runs',
  validateSearch: (search: Record<string, unknown>): RunsSearch => readRunsSearch(search),
  component: lazyRouteComponent(() => loaded(() => import('./runs/RunsPage.tsx')), 'RunsPage'),
});

const run = createRoute({
  getParentRoute: () => shell,
  path: '/runs/$runId',
  validateSearch: (search: Record<string, unknown>): RunSearch => readRunSearch(search),
  component: lazyRouteComponent(() => loaded(() => import('./runs/RunPage.tsx')), 'RunPage'),
});

const compare = createRoute({
  getParentRoute: () => shell,
  path: '/runs/$runId/compare/$otherId',
  component: lazyRouteComponent(() => loaded(() => import('./runs/ComparePage.tsx')), 'ComparePage'),
});

const workflows = createRoute({
  getParentRoute: () => shell,
  path: '/workflows',
  component: lazyRouteComponent(() => loaded(() => import('./workflows/WorkflowsPage.tsx')), 'WorkflowsPage'),
});

const workflow = createRoute({
  getParentRoute: () => shell,
  path: '/workflows/$workflowId',
  validateSearch: (search: Record<string, unknown>): WorkflowSearch => readWorkflowSearch(search),
  component: lazyRouteComponent(() => loaded(() => import('./workflows/WorkflowPage.tsx')), 'WorkflowPage'),
});

const editWorkflow = createRoute({
  getParentRoute: () => shell,
  path: '/workflows/$workflowId/edit',
  validateSearch: (search: Record<string, unknown>): EditSearch => readEditSearch(search),
  component: lazyRouteComponent(() => loaded(() => import('./workflows/EditPage.tsx')), 'EditPage'),
});

/** Not below the others: `new` may be the id of a workflow. */
const newWorkflow = createRoute({
  getParentRoute: () => shell,
  path: '/new-workflow',
  component: lazyRouteComponent(() => loaded(() => import('./workflows/EditPage.tsx')), 'NewPage'),
});

const prompt = createRoute({
  getParentRoute: () => shell,
  path: '/prompts/$templateId',
  component: lazyRouteComponent(() => loaded(() => import('./prompts/PromptPage.tsx')), 'PromptPage'),
});

/** Not below the others: `new` may be the id of a prompt. */
const newPrompt = createRoute({
  getParentRoute: () => shell,
  path: '/new-prompt',
  component: lazyRouteComponent(() => loaded(() => import('./prompts/PromptPage.tsx')), 'NewPromptPage'),
});

const operations = createRoute({
  getParentRoute: () => shell,
  path: '/operations',
  validateSearch: (search: Record<string, unknown>): OperationsSearch => readOperationsSearch(search),
  component: lazyRouteComponent(() => loaded(() => import('./operations/OperationsPage.tsx')), 'OperationsPage'),
});

const quality = createRoute({
  getParentRoute: () => shell,
  path: '/quality',
  validateSearch: (search: Record<string, unknown>): QualitySearch => readQualitySearch(search),
  component: lazyRouteComponent(() => loaded(() => import('./quality/QualityPage.tsx')), 'QualityPage'),
});

const inbox = createRoute({
  getParentRoute: () => shell,
  path: '/inbox',
  validateSearch: (search: Record<string, unknown>): InboxSearch => readInboxSearch(search),
  component: lazyRouteComponent(() => loaded(() => import('./inbox/InboxPage.tsx')), 'InboxPage'),
});

const proposals = createRoute({
  getParentRoute: () => shell,
  path: '/proposals',
  validateSearch: (search: Record<string, unknown>): ProposalsSearch => readProposalsSearch(search),
  component: lazyRouteComponent(() => loaded(() => import('./proposals/ProposalsPage.tsx')), 'ProposalsPage'),
});

const proposal = createRoute({
  getParentRoute: () => shell,
  path: '/proposals/$proposalId',
  validateSearch: (search: Record<string, unknown>): ProposalSearch => readProposalSearch(search),
  component: lazyRouteComponent(() => loaded(() => import('./proposals/ProposalPage.tsx')), 'ProposalPage'),
});

const goals = createRoute({
  getParentRoute: () => shell,
  path: '/goals',
  validateSearch: (search: Record<string, unknown>): GoalsSearch => readGoalsSearch(search),
  component: lazyRouteComponent(() => loaded(() => import('./goals/GoalsPage.tsx')), 'GoalsPage'),
});

const goal = createRoute({
  getParentRoute: () => shell,
  path: '/goals/$goalId',
  validateSearch: (search: Record<string, unknown>): GoalSearch => readGoalSearch(search),
  component: lazyRouteComponent(() => loaded(() => import('./goals/GoalPage.tsx')), 'GoalPage'),
});

const learning = [inbox, proposals, proposal, goals, goal] as const;

const missing = createRoute({
  getParentRoute: () => shell,
  path: '$',
  component: lazyRouteComponent(() => loaded(() => import('./start/Missing.tsx')), 'Missing'),
});

/** The pages. A new one is a route here, in a folder of its own. */
export const router = createRouter({
  routeTree: root.addChildren([
    signIn,
    shell.addChildren([
      home,
      runs,
      run,
      compare,
      workflows,
      workflow,
      editWorkflow,
      newWorkflow,
      prompt,
      newPrompt,
      operations,
      quality,
      ...learning,
      missing,
    ]),
  ]),
  basepath: consoleRoot.pathname,
  defaultPendingComponent: () => <Skeleton />,
  defaultErrorComponent: ({ error, reset }) => <Problem error={error} onRetry={reset} />,
  defaultPreload: 'intent',
  scrollRestoration: true,
});

onSignedOut(() => {
  queries.clear();
  void router.navigate({ to: '/sign-in', search: { next: router.state.location.href } });
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
