import { useCallback, useState } from 'react';
import type { Draft } from './draft.ts';

/** Steps that can be undone. */
const STEPS_MAX = 100;
/** Changes of one field in a row are one step. */
const SAME_STEP_MS = 800;

interface History {
  readonly past: readonly Draft[];
  readonly draft: Draft;
  readonly future: readonly Draft[];
  readonly changedAt: number;
}

/** A draft with undo and redo. */
export interface EditedDraft {
  readonly draft: Draft;
  readonly isChanged: boolean;
  readonly canUndo: boolean;
  readonly canRedo: boolean;
  /** Changes it; what is not `lasting`, such as a node that is being dragged, is no step of its own. */
  readonly change: (how: (draft: Draft) => Draft, lasting?: boolean) => void;
  readonly undo: () => void;
  readonly redo: () => void;
  /** What was saved is where it begins now. */
  readonly markSaved: (draft: Draft) => void;
}

/** Keeps a draft while it is edited. */
export function useDraft(first: Draft): EditedDraft {
  const [history, setHistory] = useState<History>({ past: [], draft: first, future: [], changedAt: 0 });
  const [saved, setSaved] = useState(first);
  const change = useCallback((how: (draft: Draft) => Draft, lasting = true): void => {
    setHistory((old) => {
      const draft = how(old.draft);
      if (draft === old.draft) return old;
      const now = Date.now();
      const isSameStep = !lasting || now - old.changedAt < SAME_STEP_MS;
      const past = isSameStep && old.past.length > 0 ? old.past : [...old.past, old.draft].slice(-STEPS_MAX);
      return { past, draft, future: [], changedAt: now };
    });
  }, []);
  const undo = useCallback((): void => {
    setHistory((old) => {
      const draft = old.past.at(-1);
      if (!draft) return old;
      return { past: old.past.slice(0, -1), draft, future: [old.draft, ...old.future], changedAt: 0 };
    });
  }, []);
  const redo = useCallback((): void => {
    setHistory((old) => {
      const [draft, ...future] = old.future;
      return draft ? { past: [...old.past, old.draft], draft, future, changedAt: 0 } : old;
    });
  }, []);
  const { draft, past, future } = history;
  return {
    draft,
    isChanged: draft !== saved,
    canUndo: past.length > 0,
    canRedo: future.length > 0,
    change,
    undo,
    redo,
    markSaved: setSaved,
  };
}
