import { button, element } from './dom.ts'
import { keepEscape } from './modal.ts'

/** Fills the body of a page. The signal aborts when the page is closed. */
export type FillPage = (body: HTMLElement, signal: AbortSignal, close: () => void) => void

/**
 * Returns a function that opens a page over the whole window. Its content is loaded when the page is
 * first opened, and made anew each time. Escape closes the page.
 */
export function createPage(title: string, load: () => Promise<FillPage>): () => void {
  const dialog = element('dialog', 'page')
  const head = element('h1', '', title)
  const body = element('div', 'page-body')
  const bar = element('header', 'page-bar')
  const close = (): void => dialog.close()
  let shown: AbortController | undefined

  head.id = `page-${title.toLowerCase()}`
  bar.append(head, button('Close', 'plain', close))
  body.tabIndex = 0
  body.role = 'region'
  body.ariaLabel = `Content of ${title.toLowerCase()}`
  dialog.setAttribute('aria-labelledby', head.id)
  dialog.append(bar, body)
  dialog.addEventListener('keydown', keepEscape)
  dialog.addEventListener('close', () => {
    shown?.abort()
    body.replaceChildren()
    dialog.remove()
  })

  return () => {
    if (dialog.open) return
    const { signal } = (shown = new AbortController())
    document.body.append(dialog)
    dialog.showModal()
    load().then(
      (fill) => {
        if (!signal.aborted) fill(body, signal, close)
      },
      () => body.replaceChildren(element('p', '', 'This page could not be loaded. Try again.')),
    )
  }
}
