/** The text of an answer on its way to the parser, which takes one piece of it at a time. */
import type { Changes } from './document.ts'
import { closeAnswer, forget, isOpen, openAnswer, send } from './parser.ts'

/** Longest answer that is parsed. A longer one is shown as its source. */
const MAX_CHARACTERS = 1_000_000

/** Place where the answer is shown. */
interface Target {
  /** Shows what the parser returned. Resolves when it is there. */
  show(changes: Changes): Promise<void>
  /** Shows the source of an answer that is not parsed. */
  showSource(text: string): void
  /** Notes that the whole answer is shown, or the feed is closed. */
  end(): void
}

export interface Feed {
  /** Returns `true` until the whole answer is shown, or the feed is closed. */
  isOpen(): boolean
  /** Passes on the text so far, which only grows. */
  update(text: string, isWhole: boolean): void
  close(): void
}

export function createFeed(target: Target): Feed {
  let text = ''
  let sent = 0
  let isWhole = false
  let isSource = false
  /** Request that the worker has not answered yet: none, a part of the text, or its end. */
  let pending: 'nothing' | 'part' | 'whole' = 'nothing'

  function proceed(): void {
    if (isSource) return giveUp()
    if (pending !== 'nothing' || (sent === text.length && !isWhole)) return
    if (text.length > MAX_CHARACTERS) return giveUp()
    pending = isWhole ? 'whole' : 'part'
    send({ answer, text: text.slice(sent), isWhole })
    sent = text.length
  }

  async function receive(changes: Changes): Promise<void> {
    await target.show(changes)
    if (pending === 'whole') return finish()
    pending = 'nothing'
    proceed()
  }

  function restart(wasWaiting: boolean): void {
    sent = 0
    if (!wasWaiting) return
    pending = 'nothing'
    proceed()
  }

  function giveUp(): void {
    isSource = true
    target.showSource(text)
    if (isWhole) finish()
  }

  function finish(): void {
    closeAnswer(answer)
    target.end()
  }

  const answer = openAnswer({ receive: (rendered) => void receive(rendered), restart, giveUp })
  return {
    isOpen: () => isOpen(answer),
    update(next, isEnd) {
      text = next
      isWhole = isEnd
      proceed()
    },
    close() {
      if (isOpen(answer) && sent > 0) forget(answer)
      finish()
    },
  }
}
