import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import type {
  AppliedProposal,
  ArtifactKind,
  PendingProposal,
  ProposalState,
} from '../../src/protocol/learning/proposals.ts';
import { client } from './client.ts';

const PAGE = 50;

/** Which proposals are listed. */
export interface ProposalFilters {
  readonly state?: ProposalState;
  readonly kind?: ArtifactKind;
}

/** The proposals that match the filters, newest first. */
export const proposalsQuery = (filters: ProposalFilters) =>
  infiniteQueryOptions({
    queryKey: ['proposals', filters],
    queryFn: ({ pageParam, signal }) =>
      client.listProposals({ ...filters, limit: PAGE, ...(pageParam ? { cursor: pageParam } : {}) }, { signal }),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
  });

/** A proposal as it stands. */
export const proposalQuery = (proposalId: string) =>
  queryOptions({
    queryKey: ['proposal', proposalId],
    queryFn: ({ signal }) => client.getProposal(proposalId, { signal }),
  });

/** What helps to decide about a proposal. */
export const evidenceQuery = (proposalId: string) =>
  queryOptions({
    queryKey: ['proposal', proposalId, 'evidence'],
    queryFn: ({ signal }) => client.getProposalEvidence(proposalId, { signal }),
  });

const LOOK_MS = 2_000;

/** The previews of a proposal; looked at again while one is running. */
export const previewsQuery = (proposalId: string) =>
  queryOptions({
    queryKey: ['proposal', proposalId, 'previews'],
    queryFn: async ({ signal }) => (await client.listProposalPreviews(proposalId, { signal })).previews,
    refetchInterval: ({ state: { data } }) => (data?.some(({ state }) => state === 'running') ? LOOK_MS : false),
  });

/** What has changed since a proposal was applied. */
export const effectQuery = (proposalId: string) =>
  queryOptions({
    queryKey: ['proposal', proposalId, 'effect'],
    queryFn: ({ signal }) => client.getProposalEffect(proposalId, { signal }),
  });

/** What applied proposals have installed. */
export const installedQuery = queryOptions({
  queryKey: ['installed'],
  queryFn: async ({ signal }) => (await client.listInstalledArtifacts({ limit: 200 }, { signal })).items,
});

/** The API document of the host; it changes only with the host. */
export const openApiQuery = queryOptions({
  queryKey: ['openapi'],
  queryFn: ({ signal }) => client.getOpenApi({ signal }),
  staleTime: Number.POSITIVE_INFINITY,
});

/** Applies what was looked at: the hash goes along, so that no later revision slips in. */
export function applyProposal(proposalId: string, artifactHash: string): Promise<AppliedProposal | PendingProposal> {
  return client.applyProposal(proposalId, { artifactHash });
}
