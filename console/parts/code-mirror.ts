import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { json, jsonParseLinter } from '@codemirror/lang-json';
import { bracketMatching, defaultHighlightStyle, HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { linter } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { EditorView, keymap, lineNumbers } from '@codemirror/view';

interface MountOptions {
  readonly text: string;
  readonly label: string;
  readonly language: 'json' | 'text';
  readonly onChange: (text: string) => void;
}

/** Our own colours, so that both themes are legible. */
const theme = EditorView.theme({
  '&': { color: 'var(--ink)', backgroundColor: 'var(--surface)', fontSize: '13px', maxHeight: '50vh' },
  '.cm-content': { fontFamily: 'var(--font-mono)', caretColor: 'var(--ink)', minHeight: '140px' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--ink-3)', border: 'none' },
  '&.cm-focused': { outline: '2px solid var(--focus)', outlineOffset: '-2px' },
  '.cm-scroller': { overflow: 'auto' },
});
const colours = HighlightStyle.define(
  defaultHighlightStyle.specs.map(({ tag }, index) => ({
    tag,
    color: ['var(--ink)', 'var(--accent)', 'var(--running)', 'var(--paused)'][index % 4]!,
  })),
);

/** How every editor looks, in both themes. */
export const looks = [theme, syntaxHighlighting(colours)];

/** Puts an editor into an element; the answer takes it out again. Tab leaves it, so that nobody is caught inside. */
export function mountEditor(parent: ShadowRoot, { text, label, language, onChange }: MountOptions): () => void {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        history(),
        bracketMatching(),
        keymap.of([...defaultKeymap, ...historyKeymap]),
        looks,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ 'aria-label': label }),
        EditorView.updateListener.of((update) => update.docChanged && onChange(update.state.doc.toString())),
        ...(language === 'json' ? [json(), linter(jsonParseLinter())] : []),
      ],
    }),
  });
  return () => view.destroy();
}
