import chromium from '@sparticuz/chromium';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The program of the browser. */
    browser: string;
  }
}

/** Unpacks the browser where it is not unpacked yet: workers that did so at the same time would start half of it. */
export default async function setup(project: TestProject): Promise<void> {
  project.provide('browser', await chromium.executablePath());
}
