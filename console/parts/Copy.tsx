import { Check, Copy as CopyIcon } from 'lucide-react';
import { useState } from 'react';
import { Button } from './Button.tsx';
import { say } from './toasts.tsx';

const SHOWN_MS = 1_500;

/** Copies a text, such as an id. */
export function Copy({ text, label }: { readonly text: string; readonly label: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), SHOWN_MS);
    } catch {
      say('This browser allows copying only on secure pages (HTTPS).');
    }
  };
  return (
    <Button
      kind="quiet"
      aria-label={`Copy ${label}`}
      title={`Copy ${label}`}
      onClick={copy}
      icon={isDone ? <Check /> : <CopyIcon />}
    />
  );
}
