import { useQueryClient } from '@tanstack/react-query';
import { Link, Outlet, useNavigate } from '@tanstack/react-router';
import { BookOpen, CircleHelp, LogOut, Moon, Search, Sun, SunMoon, Workflow } from 'lucide-react';
import { lazy, Suspense, useEffect, useState } from 'react';
import { client, consoleRoot } from '../api/client.ts';
import { stopLooking } from '../api/looking.ts';
import { useSession } from '../api/session.ts';
import { InboxCount } from '../inbox/InboxCount.tsx';
import { chooseTheme, chosenTheme, THEMES } from '../theme.ts';
import { Button } from './Button.tsx';
import { KeyHelp } from './KeyHelp.tsx';
import { PALETTE_KEYS, useKeys } from './keys.ts';
import { loaded } from './loaded.ts';
import { Principal } from './Principal.tsx';
import { PAGES } from './pages.ts';
import styles from './Shell.module.css';
import { Stale } from './Stale.tsx';
import { Toasts } from './toasts.tsx';

const importPalette = () => import('./Palette.tsx');
const Palette = lazy(() => loaded(importPalette).then(({ Palette }) => ({ default: Palette })));
/** What is typed right after the keys of the palette must not be lost while it loads. */
const LOAD_AFTER_MS = 1_500;

/** What is around every page: the navigation, the palette, the help for the keyboard, and notices. */
export function Shell() {
  const [isPaletteOpen, openPalette] = useState(false);
  const [isHelpOpen, openHelp] = useState(false);
  const navigate = useNavigate();
  useEffect(() => {
    const timer = setTimeout(() => importPalette().catch(() => {}), LOAD_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      openPalette((isOpen) => !isOpen);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  useKeys('Everywhere', [
    { keys: '?', label: 'Show the keyboard shortcuts of this page', act: () => openHelp(true) },
    ...PAGES.map(({ to, keys, title }) => ({ keys, label: `Go to ${title}`, act: () => void navigate({ to }) })),
  ]);
  return (
    <div className={styles.shell}>
      <a className={styles.skip} href={`${location.pathname}#main`}>
        Skip to the content
      </a>
      <nav className={styles.nav} aria-label="Pages">
        <Link to="/runs" search={{}} className={styles.brand} aria-label="Capstan">
          <Workflow aria-hidden="true" />
          <span>Capstan</span>
        </Link>
        <button type="button" className={styles.search} onClick={() => openPalette(true)}>
          <Search aria-hidden="true" />
          <i className="hidden">Search</i>
          <span>Go to …</span>
          <kbd className={styles.kbd}>{PALETTE_KEYS}</kbd>
        </button>
        <ul className={styles.pages}>
          {PAGES.map(({ to, title, Icon }) => (
            <li key={to}>
              <Link to={to} search={{}} className={styles.page} activeProps={{ 'data-active': '' }} title={title}>
                <Icon aria-hidden="true" />
                <span>{title}</span>
                {to === '/inbox' && <InboxCount />}
              </Link>
            </li>
          ))}
        </ul>
        <Foot onHelp={() => openHelp(true)} />
      </nav>
      <main id="main" className={styles.main} tabIndex={-1}>
        <Stale />
        <Outlet />
      </main>
      {isPaletteOpen && (
        <Suspense fallback={null}>
          <Palette onClose={() => openPalette(false)} />
        </Suspense>
      )}
      {isHelpOpen && <KeyHelp onClose={() => openHelp(false)} />}
      <Toasts />
    </div>
  );
}

/** Who is signed in, and what is about the console itself. */
function Foot({ onHelp }: { readonly onHelp: () => void }) {
  const { principal, tenant, workspace, role = 'own scopes' } = useSession();
  const [theme, setTheme] = useState(chosenTheme);
  const navigate = useNavigate();
  const cache = useQueryClient();
  const Icon = { system: SunMoon, light: Sun, dark: Moon }[theme];
  const nextTheme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system';
  const change = (): void => {
    chooseTheme(nextTheme);
    setTheme(nextTheme);
  };
  const signOut = async (): Promise<void> => {
    await stopLooking();
    await client.endConsoleSession();
    cache.clear();
    await navigate({ to: '/sign-in', search: {} });
  };
  return (
    <div className={styles.foot}>
      <a className={styles.page} href={new URL('reference/api', consoleRoot).href} title="API reference">
        <BookOpen aria-hidden="true" />
        <span>API reference</span>
      </a>
      <div className={styles.who}>
        <div className={styles.name} title={principal}>
          <Principal id={principal} />
        </div>
        <div className={styles.role}>
          {/* The first key of a host is named after its role. */}
          {role !== principal && `${role} · `}
          {workspace ?? tenant}
        </div>
      </div>
      <div className={styles.tools}>
        <Button
          kind="quiet"
          aria-label={`Theme: ${theme}`}
          title={`Theme: ${theme}`}
          icon={<Icon />}
          onClick={change}
        />
        <Button kind="quiet" aria-label="Keyboard" title="Keyboard (?)" icon={<CircleHelp />} onClick={onHelp} />
        <Button kind="quiet" aria-label="Sign out" title="Sign out" icon={<LogOut />} onClick={signOut} />
      </div>
    </div>
  );
}
