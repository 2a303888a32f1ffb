import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { RefusedError } from '../../src/client/index.ts';
import { isObject } from '../../src/protocol/format/json.ts';
import type { NodeTypeSummary, WorkflowWarning } from '../../src/protocol/running/workflows.ts';
import { client } from '../api/client.ts';
import { loaded } from '../parts/loaded.ts';
import type { Draft } from './draft.ts';

/** The problems and warnings of a draft. */
export interface Finding {
  readonly path: string;
  readonly message: string;
  readonly nodeId?: string | undefined;
  readonly isWarning: boolean;
}

/** What is known about a draft. */
export interface Findings {
  readonly found: readonly Finding[];
  /** The host has said that it would take the draft as it is. */
  readonly isAccepted: boolean;
}

/** Typing goes on quicker than this; the host is asked afterwards. */
const PAUSE_MS = 350;

/** Checks a draft as it is typed: with the engine here, and where that finds nothing with the host. */
export function useProblems(draft: Draft, types: readonly NodeTypeSummary[]): Findings {
  const settled = useSettled(draft);
  const here = useQuery({
    queryKey: ['draft-here', settled, types.length],
    queryFn: async () => (await loaded(() => import('./check.ts'))).checkHere(settled, types),
    enabled: types.length > 0,
    placeholderData: (previous) => previous,
    gcTime: 0,
  });
  const isWhole = settled.nodes.length > 0 && settled.id !== '';
  const there = useQuery({
    queryKey: ['draft-there', settled],
    queryFn: ({ signal }) => askHost(settled, signal),
    enabled: isWhole && here.data?.length === 0,
    placeholderData: (previous) => previous,
    gcTime: 0,
  });
  const mine = (here.data ?? []).map((problem): Finding => ({ ...problem, isWarning: false }));
  const hosts = mine.length === 0 && isWhole ? (there.data ?? []) : [];
  const isAccepted =
    settled === draft &&
    isWhole &&
    there.isSuccess &&
    !there.isPlaceholderData &&
    hosts.every((each) => each.isWarning);
  return { found: [...beginnings(draft), ...mine, ...hosts], isAccepted };
}

function beginnings({ id, nodes }: Draft): Finding[] {
  return [
    ...(id === '' ? [{ path: 'name', message: 'Give the workflow a name.', isWarning: false }] : []),
    ...(nodes.length === 0 ? [{ path: 'nodes', message: 'Add a node from the catalogue.', isWarning: false }] : []),
  ];
}

async function askHost(draft: Draft, signal: AbortSignal): Promise<readonly Finding[]> {
  try {
    const { warnings } = await client.validateWorkflow(draft, { signal });
    return warnings.map((warning) => ({ ...warning, isWarning: true }));
  } catch (error) {
    if (error instanceof RefusedError) return refusedFields(error);
    throw error;
  }
}

/** The problems that a refusal names, or the refusal itself. */
export function refusedFields({ details, message }: RefusedError): readonly Finding[] {
  const fields = (Array.isArray(details.fields) ? details.fields : []).filter(isFinding);
  if (fields.length === 0) return [{ path: '', message, isWarning: false }];
  return fields.map((field) => ({ ...field, isWarning: false }));
}

function isFinding(value: unknown): value is WorkflowWarning {
  return isObject(value) && typeof value.path === 'string' && typeof value.message === 'string';
}

function useSettled(draft: Draft): Draft {
  const [settled, settle] = useState(draft);
  useEffect(() => {
    const timer = setTimeout(() => settle(draft), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [draft]);
  return settled;
}
