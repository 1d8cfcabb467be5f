/** The body of an answer as it was received, in pieces: the browser lays out only those in view. */
import { byId, element } from '../dom.ts'

/** Length of a piece. The last one, which grows, is laid out again with every token. */
const PIECE_CHARACTERS = 2_000

/** Distance in pixels from its end at which the view follows new events. */
const NEAR_END = 40

export function createEventsView() {
  const box = byId('events', HTMLElement)
  let text = document.createTextNode('')
  let length = 0
  let isAtEnd = true

  box.addEventListener('scroll', () => {
    isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END
  })

  function addPiece(): void {
    const piece = element('span', 'piece')
    text = document.createTextNode('')
    piece.append(text)
    box.append(piece)
  }

  return {
    /** Removes the body of another answer. */
    clear(): void {
      box.replaceChildren()
      length = 0
      isAtEnd = true
      addPiece()
    },
    /** Shows the body so far, which only grows. */
    show(body: string): void {
      if (body.length === length) return
      while (length < body.length) {
        const part = nextPart(body, length, PIECE_CHARACTERS - text.length)
        text.appendData(part)
        length += part.length
        if (text.length >= PIECE_CHARACTERS && part.endsWith('\n')) addPiece()
      }
      if (isAtEnd) box.scrollTop = box.scrollHeight
    },
  }
}

/** Returns the text from `start`: at least `room` characters, if there are, and to the end of a line. */
function nextPart(body: string, start: number, room: number): string {
  const end = body.indexOf('\n', start + Math.max(0, room))
  return body.slice(start, end < 0 ? undefined : end + 1)
}
