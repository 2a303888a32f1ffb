import {
  autocompletion,
  type CompletionContext,
  type CompletionResult,
  completionKeymap,
} from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { EditorState } from '@codemirror/state';
import { EditorView, keymap } from '@codemirror/view';

/** What an expression may name: a path such as `variables.plan`, and what it is. */
export interface KnownName {
  readonly path: string;
  readonly detail: string;
}

interface MountOptions {
  readonly text: string;
  readonly label: string;
  readonly names: () => readonly KnownName[];
  readonly onChange: (text: string) => void;
}

const FUNCTIONS = ['size()', 'has()', 'startsWith()', 'endsWith()', 'contains()', 'matches()', 'exists()', 'all()'];

const theme = EditorView.theme({
  '&': {
    color: 'var(--ink)',
    backgroundColor: 'var(--surface)',
    fontSize: '13px',
    border: '1px solid var(--line-strong)',
    borderRadius: 'var(--radius)',
  },
  '.cm-content': { fontFamily: 'var(--font-mono)', caretColor: 'var(--ink)', minHeight: '34px' },
  '&.cm-focused': { outline: '2px solid var(--focus)', outlineOffset: '1px' },
  '.cm-tooltip': { background: 'var(--raised)', color: 'var(--ink)', border: '1px solid var(--line-strong)' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { background: 'var(--accent)', color: 'var(--accent-ink)' },
});

/** Puts an editor for a CEL expression into an element; it completes the names of the workflow. */
export function mountExpressionEditor(parent: ShadowRoot, { text, label, names, onChange }: MountOptions): () => void {
  const complete = (context: CompletionContext): CompletionResult | null => {
    const word = context.matchBefore(/[\w.[\]"'-]*/);
    if (!word || (word.from === word.to && !context.explicit)) return null;
    const known = names().map(({ path, detail }) => ({ label: path, detail, type: 'variable' }));
    return { from: word.from, options: [...known, ...FUNCTIONS.map((name) => ({ label: name, type: 'function' }))] };
  };
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        history(),
        autocompletion({ override: [complete] }),
        keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
        theme,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ 'aria-label': label }),
        EditorView.updateListener.of((update) => update.docChanged && onChange(update.state.doc.toString())),
      ],
    }),
  });
  return () => view.destroy();
}
