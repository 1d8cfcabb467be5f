import type { Server } from '../src/index.ts'
import { byId, copies } from './dom.ts'
import { createCodeView } from './inspector/code-view.ts'
import { createEventsView } from './inspector/events-view.ts'
import { createFactsView } from './inspector/facts.ts'
import { createHeadersView } from './inspector/headers.ts'
import { createTimelineView } from './inspector/timeline-view.ts'
import { createTranslation } from './inspector/translation.ts'
import { notice, wordsOf } from './notice.ts'
import { receive, type Answer } from './wire/answer.ts'

export interface Inspector {
  /** Shows the answer so far. Call it again when more of it has arrived. */
  show(answer: Answer): void
}

/** Creates the view of the last exchange: its request as code, its events, and when they arrived. */
export function createInspector(starting: Promise<Server>): Inspector {
  const facts = createFactsView()
  const events = createEventsView()
  const code = createCodeView()
  const timeline = createTimelineView()
  const headers = createHeadersView()
  const translation = createTranslation()
  let shown: Answer | undefined

  function begin(answer: Answer): void {
    shown = answer
    events.clear()
    code.show(answer)
    timeline.begin(answer)
    translation.show(answer)
    byId('requests-empty', HTMLElement).hidden = true
    byId('requests-last', HTMLElement).hidden = false
  }

  function show(answer: Answer): void {
    if (answer !== shown) begin(answer)
    events.show(answer.raw)
    timeline.show()
    headers.show(answer)
    facts.show(answer)
  }

  byId('requests-more', HTMLElement).append(timeline.element, headers.element, translation.element)
  copies(byId('copy-events', HTMLButtonElement), () => shown?.raw ?? '')
  createReplay(starting, () => shown, show)
  return { show }
}

/** Makes a button send the shown request again, outside of the chat, and stop it. */
function createReplay(
  starting: Promise<Server>,
  read: () => Answer | undefined,
  show: (answer: Answer) => void,
): void {
  const trigger = byId('replay', HTMLButtonElement)
  let running: AbortController | undefined

  async function send({ style, url, request, question }: Answer, signal: AbortSignal) {
    const server = await starting
    const answer: Answer = { style, url, request, question, raw: '', text: '' }
    const update = (): void => {
      // Another answer may be shown by now.
      if (read() === answer) show(answer)
    }
    show(answer)
    await receive(answer, server.controlled ? fetch : server.fetch, signal, update)
  }

  trigger.addEventListener('click', () => {
    if (running) return running.abort()
    const answer = read()
    if (!answer) return
    const { signal } = (running = new AbortController())
    trigger.textContent = 'Stop'
    send(answer, signal)
      .catch((error: unknown) => {
        if (!signal.aborted) notice(`The request failed. ${wordsOf(error)}`, 'mild')
      })
      .finally(() => {
        running = undefined
        trigger.textContent = 'Replay'
      })
  })
}
