/** `{name}` as the router writes it; a parameter in front of a colon verb ends at the colon. */
export function routerPath(path: string): string {
  return path
    .replace(/\{(\w+)\}(?=:)/g, ':$1(^[^:/]+)')
    .replace(/(?<=[\w)]):(?=[a-z])/g, '::')
    .replace(/\{(\w+)\}/g, ':$1');
}
