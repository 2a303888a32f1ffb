import { json } from '@codemirror/lang-json';
import { MergeView } from '@codemirror/merge';
import { EditorState } from '@codemirror/state';
import { EditorView, lineNumbers } from '@codemirror/view';

const theme = EditorView.theme({
  '&': { color: 'var(--ink)', backgroundColor: 'var(--surface)', fontSize: '12px' },
  '.cm-content': { fontFamily: 'var(--font-mono)' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--ink-3)', border: 'none' },
  '&.cm-merge-a .cm-changedLine': { backgroundColor: 'var(--failed-soft)' },
  '&.cm-merge-b .cm-changedLine': { backgroundColor: 'var(--completed-soft)' },
  '& .cm-changedText': { background: 'none', fontWeight: '600' },
  '.cm-collapsedLines': { background: 'var(--sunken)', color: 'var(--ink-2)', fontFamily: 'system-ui' },
});

/** Shows two texts side by side; the answer takes them out again. */
export function mountMergeView(parent: ShadowRoot, old: string, fresh: string): () => void {
  const side = (doc: string, label: string) => ({
    doc,
    extensions: [
      json(),
      lineNumbers(),
      theme,
      EditorView.lineWrapping,
      EditorState.readOnly.of(true),
      EditorView.contentAttributes.of({ 'aria-label': label }),
    ],
  });
  const view = new MergeView({
    parent,
    root: parent,
    a: side(old, 'Old version'),
    b: side(fresh, 'New version'),
    collapseUnchanged: { margin: 3, minSize: 6 },
    gutter: true,
  });
  return () => view.destroy();
}
