/** The themes that a visitor can choose; `system` follows the machine. */
export const THEMES = ['system', 'light', 'dark'] as const;
/** One of THEMES. */
export type Theme = (typeof THEMES)[number];

const NAME = 'capstan-theme';
const dark = matchMedia('(prefers-color-scheme: dark)');

/** The theme that the visitor chose. */
export function chosenTheme(): Theme {
  const stored = localStorage.getItem(NAME);
  return THEMES.find((theme) => theme === stored) ?? 'system';
}

/** Keeps the choice and shows it. */
export function chooseTheme(theme: Theme): void {
  localStorage.setItem(NAME, theme);
  showTheme();
}

/** Shows the chosen theme, and follows the machine where it was left the choice. */
export function showTheme(): void {
  const chosen = chosenTheme();
  const isDark = chosen === 'dark' || (chosen === 'system' && dark.matches);
  document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
}

dark.addEventListener('change', showTheme);
