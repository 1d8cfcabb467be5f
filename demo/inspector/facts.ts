/** The figures of an answer. A row waits with a dash for its figure, so that nothing moves. */
import { byId, element } from '../dom.ts'
import { duration, rate } from '../format.ts'
import { tokensPerSecond, type Answer } from '../wire/answer.ts'

type Row = readonly [name: string, value: string | undefined]

export function createFactsView() {
  const list = byId('facts', HTMLElement)
  let names: string[] = []

  return {
    show(answer: Answer): void {
      const rows = rowsOf(answer)
      const isSame = rows.length === names.length && rows.every(([name], at) => name === names[at])
      if (!isSame) {
        names = rows.map(([name]) => name)
        list.replaceChildren(
          ...names.flatMap((name) => [element('dt', '', name), element('dd', '')]),
        )
      }
      const values = list.querySelectorAll('dd')
      for (const [at, [, value = '–']] of rows.entries()) {
        const cell = values[at]
        if (cell && cell.textContent !== value) cell.textContent = value
      }
    },
  }
}

function rowsOf(answer: Answer): Row[] {
  const { status, headers, promptTokens, cachedTokens, completionTokens, firstText, finish } =
    answer
  const speed = tokensPerSecond(answer)
  const ignored = headers?.get('x-inorigin-ignored')
  const type = headers?.get('content-type')
  const cached = cachedTokens ? `, ${cachedTokens} cached` : ''
  const rows: Row[] = [
    ['Endpoint', `POST ${new URL(answer.url).pathname}`],
    ['Status', status === undefined ? 'waiting' : [status, type].filter(Boolean).join(' · ')],
    ['First token', firstText === undefined ? undefined : duration(firstText)],
    ['Rate', speed === undefined ? undefined : `${rate(speed)} tokens/s`],
    ['Prompt', promptTokens === undefined ? undefined : `${promptTokens} tokens${cached}`],
    ['Answer', completionTokens === undefined ? undefined : `${completionTokens} tokens`],
    ['Finish', finish],
  ]
  return ignored ? [...rows, ['Ignored fields', ignored]] : rows
}
