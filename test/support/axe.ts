/** Accessibility findings of axe-core in a page. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright'

const SCRIPT = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

interface AxeWindow extends Window {
  axe?: {
    run(context: {
      include: string[]
    }): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>
  }
}

/**
 * Returns what axe-core finds in the elements of the selectors, or in the whole page: each rule with its
 * elements.
 */
export async function findAccessibilityProblems(
  page: Page,
  ...include: string[]
): Promise<string[]> {
  // `evaluate` is not subject to the policy of the page, which forbids scripts of elsewhere.
  if (!(await page.evaluate(() => 'axe' in window))) {
    await page.evaluate(readFileSync(SCRIPT, 'utf8'))
  }
  return page.evaluate(async (selectors) => {
    const { axe } = window as AxeWindow
    if (!axe) throw new Error('axe-core was not loaded.')
    const { violations } = await axe.run({ include: selectors.length > 0 ? selectors : ['html'] })
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
  }, include)
}
