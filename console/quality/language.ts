/**
 * Makes the browser name a language that it knows. Without a locale, browsers on Linux call theirs `en-US@posix`, which
 * their own formats refuse, and the chart library asks for one as soon as it is loaded.
 */
export function settleLanguage(): void {
  try {
    new Intl.NumberFormat(navigator.language);
  } catch {
    Object.defineProperty(navigator, 'language', { value: 'en-US', configurable: true });
  }
}
