/** The seeds of a test: the first of them, as many as usual or as `CAPSTAN_SIM_SEEDS` says. */
export function seeds(usual: number): number[] {
  return Array.from({ length: Number(process.env.CAPSTAN_SIM_SEEDS ?? usual) }, (_, index) => index + 1);
}
