import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useRouter } from '@tanstack/react-router';
import { Workflow } from 'lucide-react';
import { type FormEvent, useState } from 'react';
import { RefusedError } from '../../src/client/index.ts';
import type { SignInProblem } from '../../src/protocol/operations/console-header.ts';
import { beginSignInUrl, consoleRoot, signIn } from '../api/client.ts';
import { signInMethodsQuery } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { explain } from '../parts/explain.ts';
import { Field } from '../parts/Field.tsx';
import styles from './SignIn.module.css';

const route = getRouteApi('/sign-in');
/** What a request header can carry. */
const SENDABLE = /^[\x21-\x7e]+$/;

/** What went wrong at the identity provider. */
const PROBLEMS: Readonly<Record<SignInProblem, string>> = {
  'other-browser': 'The sign-in was not begun in this browser, or took too long. Try again.',
  'not-confirmed': 'The identity provider did not confirm the sign-in. Try again.',
  'no-access': 'Your account has no access to this host. Ask its operator.',
  'too-long':
    'The claims from your identity provider are too long for a cookie. Sign in with a key, or ask the operator to reduce the claims.',
};

/** Signing in with a key, or with a token of the identity provider. Neither is kept by the page. */
export function SignIn() {
  const { next, problem: refused } = route.useSearch();
  const router = useRouter();
  const cache = useQueryClient();
  const { data: { redirect } = {} } = useQuery(signInMethodsQuery);
  const [problem, setProblem] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const key = String(new FormData(event.currentTarget).get('key') ?? '').trim();
    if (!SENDABLE.test(key)) return setProblem('This is not a key: it contains characters that keys do not have.');
    setBusy(true);
    try {
      await signIn(key);
      cache.clear();
      // Addresses of the router begin at the console; nothing that the address says leads out of it.
      router.history.push(consoleRoot.pathname + (next ?? 'runs').replace(/^\/+/, ''));
    } catch (error) {
      setProblem(reasonOf(error));
      setBusy(false);
    }
  };
  return (
    <main className={styles.page}>
      <form className={styles.card} onSubmit={submit}>
        <Workflow className={styles.mark} aria-hidden="true" />
        <h1>Sign in to Capstan</h1>
        <p className={styles.lead}>Watch your workflows run, answer what waits for you, and rate the results.</p>
        {refused !== undefined && (
          <p className={styles.problem} role="alert">
            {PROBLEMS[refused]}
          </p>
        )}
        {redirect && (
          <>
            <a className={styles.redirect} href={beginSignInUrl(next)}>
              Sign in with {new URL(redirect.issuer).host}
            </a>
            <p className={styles.or}>or</p>
          </>
        )}
        <Field label="API key or token" problem={problem}>
          {(field) => (
            <input
              {...field}
              name="key"
              type="password"
              autoComplete="current-password"
              required
              placeholder="hk_live_…"
              onChange={() => setProblem(undefined)}
            />
          )}
        </Field>
        <Button kind={redirect ? 'plain' : 'main'} type="submit" isBusy={isBusy}>
          Sign in
        </Button>
        <p className={styles.note}>
          The host prints a key when it starts for the first time; later, <code>capstan keys create</code> makes one.
          The key becomes a session that scripts of this page cannot read.
        </p>
        <p className={styles.note}>
          <a href={new URL('reference/', consoleRoot).href}>Quick start and API reference</a>
        </p>
      </form>
    </main>
  );
}

function reasonOf(error: unknown): string {
  if (!(error instanceof RefusedError) || error.status !== 401) return explain(error).text;
  const { code } = error;
  if (code === 'key_revoked') return 'This key was revoked. Ask for a new one.';
  return code === 'key_expired' ? 'This key has expired. Ask for a new one.' : 'The host does not know this key.';
}
