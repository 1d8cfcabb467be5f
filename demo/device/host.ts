/** The tab that hosts the models, the requests that it answers now, and the models in its memory. */
import type { ModelState, Server, Tag, TraceEvent } from '../../src/index.ts'
import { element } from '../dom.ts'
import { bytes } from '../format.ts'
import { findHost } from './host-tab.ts'

export function createHostView(server: Server, signal: AbortSignal) {
  const made = element('section', '')
  const facts = element('dl', 'facts')
  const wrap = element('div', 'wide-table')
  /** Tags of the requests that began since the page was opened and have not ended. */
  const running = new Map<string, Tag>()
  made.append(element('h2', '', 'Host'), facts, wrap)

  async function refresh(): Promise<void> {
    const [states, host] = await Promise.all([server.models.list(), findHost()])
    if (signal.aborted) return
    const queued = running.size === 0 ? 'none' : String(running.size)
    const rows: readonly (readonly [string, string])[] = [
      ['Server', server.controlled ? server.baseURL : 'only this page, through server.fetch'],
      ['Hosting tab', host],
      ['Running or waiting requests', `${queued}, since this page was opened`],
    ]
    facts.replaceChildren(
      ...rows.flatMap(([name, value]) => [element('dt', '', name), element('dd', '', value)]),
    )
    const loaded = states.filter(({ status }) => status === 'loaded' || status === 'loading')
    wrap.replaceChildren(
      loaded.length > 0 ? tableOf(loaded) : element('p', 'quiet', 'No model is in memory.'),
    )
  }

  function tableOf(loaded: readonly ModelState[]): HTMLElement {
    const table = element('table', '')
    const head = element('tr', '')
    const titles = ['Model in memory', 'State', 'Device', 'Files', 'Memory, estimated', 'Users']
    for (const title of titles) {
      const cell = element('th', '', title)
      cell.scope = 'col'
      head.append(cell)
    }
    table.append(head)
    for (const { tag, status, device, bytes: size, memory, users } of loaded) {
      const row = element('tr', '')
      const sizes = [size, memory].map((one) => bytes(one ?? 0))
      const values = [tag, status, device ?? '', ...sizes, String(users)]
      row.append(...values.map((value) => element('td', '', value)))
      table.append(row)
    }
    return table
  }

  return {
    element: made,
    refresh,
    take(event: TraceEvent): void {
      if (event.type === 'host') running.clear()
      if (event.type === 'request') running.set(event.id, event.tag)
      if (event.type === 'response' || event.type === 'failure') running.delete(event.id)
      if (event.type !== 'choice') void refresh().catch(() => {})
    },
  }
}
