/** The log of the host: its latest events, which have no prompts, completions, inputs or outputs. */
import type { TraceEvent } from '../../src/index.ts'
import { button, copies, element } from '../dom.ts'
import { duration } from '../format.ts'

/** Number of events that are shown. */
const SHOWN_EVENTS = 200

export function createLog() {
  const made = element('section', '')
  const wrap = element('div', 'wide-table')
  const table = element('table', '')
  const empty = element('p', 'quiet', 'Nothing has happened since this page was opened.')
  const row = element('div', 'row')
  const copy = button('Copy as JSON', 'plain', () => {})
  const events: TraceEvent[] = []

  copies(copy, () => JSON.stringify(events, null, 2))
  row.append(copy)
  wrap.append(table)
  wrap.tabIndex = 0
  wrap.role = 'region'
  wrap.ariaLabel = 'Log'
  made.append(element('h2', '', 'Log'), empty, wrap, row)
  row.hidden = true
  wrap.hidden = true
  return {
    element: made,
    take(event: TraceEvent): void {
      empty.hidden = true
      row.hidden = false
      wrap.hidden = false
      events.push(event)
      table.append(toRow(event))
      if (events.length <= SHOWN_EVENTS) return
      events.shift()
      table.rows[0]?.remove()
    },
  }
}

function toRow(event: TraceEvent): HTMLElement {
  const row = element('tr', '')
  const time = new Date(event.time).toLocaleTimeString('en-GB')
  const tag = 'tag' in event ? event.tag : ''
  row.append(
    element('td', '', time),
    element('td', '', event.type),
    element('td', '', tag),
    element('td', '', detailOf(event)),
  )
  return row
}

function detailOf(event: TraceEvent): string {
  switch (event.type) {
    case 'host':
      return 'a tab hosts now'
    case 'request':
      return event.operation
    case 'response':
      return `${event.operation}, ${duration(event.milliseconds)}`
    case 'failure':
      return `${event.operation}, ${event.error.code ?? event.error.kind}`
    case 'choice':
      return `${event.implementation} on ${event.device}`
    case 'load':
      return `${event.implementation}, ${event.status}`
  }
}
