import { byId, copies, element } from './dom.ts'
import { duration, rate } from './format.ts'
import { tokensPerSecond, type Answer } from './wire/answer.ts'
import { snippet } from './wire/snippet.ts'

export interface Inspector {
  /** Shows the answer so far. Call it again when more of it has arrived. */
  show(answer: Answer): void
}

/** Creates the view of the last exchange: its request as code, and its events as received. */
export function createInspector(): Inspector {
  const facts = byId('facts', HTMLElement)
  const request = byId('request', HTMLElement)
  const events = byId('events', HTMLElement)
  let shown: Answer | undefined
  let raw = document.createTextNode('')

  function begin(answer: Answer): void {
    shown = answer
    raw = document.createTextNode('')
    events.replaceChildren(raw)
    request.textContent = snippet(answer.url, answer.request)
    byId('wire-empty', HTMLElement).hidden = true
    byId('wire-last', HTMLElement).hidden = false
  }

  copies(byId('copy-request', HTMLButtonElement), () => request.textContent ?? '')
  copies(byId('copy-events', HTMLButtonElement), () => raw.data)

  return {
    show(answer) {
      if (answer !== shown) begin(answer)
      const atEnd = events.scrollHeight - events.scrollTop - events.clientHeight < 40
      raw.appendData(answer.raw.slice(raw.length))
      if (atEnd) events.scrollTop = events.scrollHeight
      facts.replaceChildren(
        ...factsOf(answer).flatMap(([name, value]) => [
          element('dt', '', name),
          element('dd', '', value),
        ]),
      )
    },
  }
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
