/** Reads an answer to screen readers as it arrives: whole sentences, and not each token anew. */
import { byId, element } from '../dom.ts'

/** Milliseconds between two announcements, so that fast answers become few of them. */
const INTERVAL_MS = 1_000

/** Number of announcements that the page keeps. */
const KEPT = 20

export interface Announcer {
  /** Announces the sentences of an answer that are new. The answer only grows. */
  follow(text: string): void
  /** Announces the rest of the answer. */
  end(text: string): void
}

export function createAnnouncer(): Announcer {
  const region = byId('announcer', HTMLElement)
  let length = 0
  let last = -INTERVAL_MS
  let timer: ReturnType<typeof setTimeout> | undefined

  function say(text: string, end: number): void {
    const words = toWords(text.slice(length, end))
    length = end
    if (words === '') return
    last = performance.now()
    region.append(element('p', '', words))
    while (region.childElementCount > KEPT) region.firstChild?.remove()
  }

  function saySentences(text: string): void {
    const end = endOfSentences(text)
    if (end > length) say(text, end)
  }

  return {
    follow(text) {
      if (text.length < length) length = 0
      clearTimeout(timer)
      const wait = last + INTERVAL_MS - performance.now()
      // An answer may pause behind a sentence, so that nothing follows it for long.
      if (wait > 0) timer = setTimeout(() => saySentences(text), wait)
      else saySentences(text)
    },
    end(text) {
      clearTimeout(timer)
      say(text, text.length)
      length = 0
    },
  }
}

/** Returns the index after the last sentence or line that is whole. */
function endOfSentences(text: string): number {
  const dot = Math.max(...['. ', '! ', '? ', ': '].map((mark) => text.lastIndexOf(mark)))
  return Math.max(dot < 0 ? 0 : dot + 2, text.lastIndexOf('\n') + 1)
}

/** Returns the text without the signs of Markdown that a screen reader would spell. */
function toWords(markdown: string): string {
  return markdown
    .replaceAll(/[*_`~#|>$]+|^\s*[-+] |:?-{3,}:?/gm, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
}
