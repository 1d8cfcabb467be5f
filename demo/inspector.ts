import type { Server } from '../src/index.ts'
import { byId, copies, element } from './dom.ts'
import { duration, rate } from './format.ts'
import { createCodeView } from './inspector/code-view.ts'
import { createHeadersView } from './inspector/headers.ts'
import { createTimelineView } from './inspector/timeline-view.ts'
import { createTranslation } from './inspector/translation.ts'
import { notice, wordsOf } from './notice.ts'
import { receive, tokensPerSecond, type Answer } from './wire/answer.ts'

export interface Inspector {
  /** Shows the answer so far. Call it again when more of it has arrived. */
  show(answer: Answer): void
}

/** Creates the view of the last exchange: its request as code, its events, and when they arrived. */
export function createInspector(starting: Promise<Server>): Inspector {
  const facts = byId('facts', HTMLElement)
  const events = byId('events', HTMLElement)
  const code = createCodeView()
  const timeline = createTimelineView()
  const headers = createHeadersView()
  const translation = createTranslation()
  let shown: Answer | undefined
  let raw = document.createTextNode('')

  function begin(answer: Answer): void {
    shown = answer
    raw = document.createTextNode('')
    events.replaceChildren(raw)
    code.show(answer)
    timeline.begin(answer)
    translation.show(answer)
    byId('wire-empty', HTMLElement).hidden = true
    byId('wire-last', HTMLElement).hidden = false
  }

  function show(answer: Answer): void {
    if (answer !== shown) begin(answer)
    const atEnd = events.scrollHeight - events.scrollTop - events.clientHeight < 40
    raw.appendData(answer.raw.slice(raw.length))
    if (atEnd) events.scrollTop = events.scrollHeight
    timeline.show()
    headers.show(answer)
    facts.replaceChildren(
      ...factsOf(answer).flatMap(([name, value]) => [
        element('dt', '', name),
        element('dd', '', value),
      ]),
    )
  }

  byId('wire-more', HTMLElement).append(timeline.element, headers.element, translation.element)
  copies(byId('copy-events', HTMLButtonElement), () => raw.data)
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

function factsOf(answer: Answer): [name: string, value: string][] {
  const { status, headers, promptTokens, completionTokens, firstText, finish } = answer
  const speed = tokensPerSecond(answer)
  const ignored = headers?.get('x-inorigin-ignored')
  const type = headers?.get('content-type')
  const list: [string, string | undefined][] = [
    ['Endpoint', `POST ${new URL(answer.url).pathname}`],
    ['Status', status === undefined ? 'waiting' : [status, type].filter(Boolean).join(' · ')],
    ['First token', firstText === undefined ? undefined : duration(firstText)],
    ['Rate', speed === undefined ? undefined : `${rate(speed)} tokens/s`],
    ['Prompt', promptTokens === undefined ? undefined : `${promptTokens} tokens`],
    ['Answer', completionTokens === undefined ? undefined : `${completionTokens} tokens`],
    ['Finish', finish],
    ['Without effect', ignored ?? undefined],
  ]
  return list.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
}
