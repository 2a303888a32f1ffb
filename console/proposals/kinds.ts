import type { ArtifactKind, ProposalState } from '../../src/protocol/learning/proposals.ts';

/** What can be proposed, in words, with the schema of the API document that it must match. */
export const KINDS: Readonly<Record<ArtifactKind, { readonly words: string; readonly schema: string }>> = {
  'prompt-template': { words: 'Prompt template', schema: 'SubmittedPromptTemplate' },
  'workflow-chain-pack': { words: 'Workflow chain', schema: 'WorkflowChainPackManifest' },
  'agent-pack': { words: 'Agent', schema: 'AgentPackManifest' },
  automation: { words: 'Automation', schema: 'ScheduleRequest' },
};

/** The kinds, for filters. */
export const ARTIFACT_KINDS = Object.keys(KINDS) as readonly ArtifactKind[];

/** How states are shown: a hue, a shape and a word. */
export const STATES: Readonly<Record<ProposalState, readonly [hue: string, shape: string, word: string]>> = {
  draft: ['waiting', '◐', 'Draft'],
  revised: ['waiting', '◑', 'Revised'],
  applied: ['completed', '✓', 'Applied'],
  rejected: ['failed', '✕', 'Rejected'],
  archived: ['cancelled', '⊘', 'Archived'],
};

/** The states, for filters. */
export const PROPOSAL_STATES = Object.keys(STATES) as readonly ProposalState[];
