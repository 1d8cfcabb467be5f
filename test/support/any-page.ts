import type { Page } from 'playwright'

/** A page that runs functions of a test: Playwright's, or a tab of `tabs.ts`. */
export type AnyPage = Pick<Page, 'evaluate' | 'waitForFunction'>
