/** Shows answers as Markdown. A worker parses them, so an answer cannot stop the page. */
import { createBlocks } from './blocks.ts'
import { createFeed } from './feed.ts'

/** An answer on the page. */
export interface MarkdownView {
  /** Shows the text of the answer so far, which only grows. Calls `onShown` after each change. */
  show(text: string, onShown: () => void): void
  /** Shows the whole answer. Resolves when it is there. */
  end(text: string): Promise<void>
  /** Forgets the answer, which need not be shown any more. */
  close(): void
}

/** Shows an answer in `parent`. */
export function createMarkdownView(parent: HTMLElement): MarkdownView {
  const change = createBlocks(parent)
  let source: Text | undefined
  let onShown = (): void => {}
  let settle = (): void => {}

  const feed = createFeed({
    show: (changes) => change(changes, () => onShown()),
    showSource(text) {
      source ??= showText(parent)
      source.appendData(text.slice(source.length))
      onShown()
    },
    end: () => settle(),
  })

  return {
    show(text, shown) {
      onShown = shown
      feed.update(text, false)
    },
    async end(text) {
      if (!feed.isOpen()) return
      const shown = new Promise<void>((resolve) => (settle = resolve))
      feed.update(text, true)
      await shown
    },
    close: feed.close,
  }
}

/** Shows a text, which is empty at first, in place of what `parent` holds. */
function showText(parent: HTMLElement): Text {
  const text = document.createTextNode('')
  parent.classList.add('plain-text')
  parent.replaceChildren(text)
  return text
}
