import { json } from '@codemirror/lang-json';
import { MergeView, unifiedMergeView } from '@codemirror/merge';
import { EditorState, type Extension } from '@codemirror/state';
import { EditorView, lineNumbers } from '@codemirror/view';
import { looks } from './code-mirror.ts';

/** Two texts, with names for those who hear them. */
export interface Compared {
  readonly before: string;
  readonly after: string;
  readonly labels: readonly [before: string, after: string];
}

const theme = EditorView.theme({
  '&.cm-merge-a .cm-changedLine, .cm-deletedChunk': { backgroundColor: 'var(--failed-soft)' },
  '&.cm-merge-b .cm-changedLine, .cm-changedLine': { backgroundColor: 'var(--completed-soft)' },
  '&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText': {
    background: 'none',
    textDecoration: 'underline 2px var(--failed)',
  },
  '&.cm-merge-b .cm-changedText, .cm-changedText': {
    background: 'none',
    textDecoration: 'underline 2px var(--completed)',
  },
  '.cm-collapsedLines': { background: 'var(--sunken)', color: 'var(--ink-2)' },
  '.cm-changeGutter': { width: '3px', paddingLeft: '0' },
});
/** So many lines stay around a change; longer stretches without one are folded. */
const FOLDED = { margin: 3, minSize: 8 };

function reading(label: string): Extension[] {
  return [
    lineNumbers(),
    looks,
    theme,
    json(),
    EditorView.lineWrapping,
    EditorState.readOnly.of(true),
    EditorView.contentAttributes.of({ 'aria-label': label, 'aria-readonly': 'true' }),
  ];
}

/** Shows two texts side by side, or one below the other where there is no room; the answer takes them out again. */
export function mountDiff(parent: ShadowRoot, { before, after, labels }: Compared, isNarrow: boolean): () => void {
  if (!isNarrow) {
    const view = new MergeView({
      parent,
      root: parent,
      a: { doc: before, extensions: reading(labels[0]) },
      b: { doc: after, extensions: reading(labels[1]) },
      collapseUnchanged: FOLDED,
    });
    return () => view.destroy();
  }
  const unified = unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged: FOLDED });
  const view = new EditorView({
    parent,
    state: EditorState.create({ doc: after, extensions: [reading(labels.join(' and ')), unified] }),
  });
  return () => view.destroy();
}
