/** Headers of the request and the response, and the usage that the answer reports. */
import { element } from '../dom.ts'
import type { Answer } from '../wire/answer.ts'
import { usageReader } from './usage.ts'

export function createHeadersView() {
  const details = element('details', '')
  const sent = element('dl', 'facts')
  const received = element('dl', 'facts')
  const usage = element('dl', 'facts')
  const titled = (title: string, list: HTMLElement): HTMLElement[] => [
    element('h2', '', title),
    list,
  ]
  details.append(
    element('summary', '', 'Headers and usage'),
    ...titled('Request', sent),
    ...titled('Response', received),
    ...titled('Usage', usage),
  )
  details.addEventListener('toggle', () => update())
  let shown: Answer | undefined
  let read = usageReader()
  let length = 0

  function update(): void {
    if (!shown || !details.open) return
    const counts = read(shown.raw.slice(length))
    length = shown.raw.length
    fill(sent, Object.entries(shown.request.headers))
    fill(received, [...(shown.headers ?? [])])
    fill(
      usage,
      [...counts].map(([name, count]) => [name, count.toLocaleString('en')]),
    )
  }

  return {
    element: details,
    show(answer: Answer): void {
      if (answer !== shown) {
        read = usageReader()
        length = 0
      }
      shown = answer
      update()
    },
  }
}

function fill(list: HTMLElement, rows: readonly (readonly [string, string])[]): void {
  const parts = rows.flatMap(([name, value]) => [element('dt', '', name), element('dd', '', value)])
  list.replaceChildren(...(parts.length > 0 ? parts : [element('dt', '', 'none')]))
}
