/** The time line as a table: when an event arrived, how long nothing had, and what it is. */
import { element } from '../dom.ts'
import { duration } from '../format.ts'
import type { Answer } from '../wire/answer.ts'
import {
  addToSummary,
  timelineReader,
  type TimelineEntry,
  type TimelineSummary,
} from './timeline.ts'

/** Number of events that are shown. The figures count all of them. */
const SHOWN_EVENTS = 300

const NONE: TimelineSummary = { events: 0, tokens: 0, heartbeats: 0, longestGap: 0 }

export function createTimelineView() {
  const details = element('details', '')
  const said = element('p', 'quiet')
  const wrap = element('div', 'wide-table timeline')
  const table = element('table', '')
  const body = element('tbody', '')
  let next: () => TimelineEntry[] = () => []
  let summary = NONE

  table.append(headOf('At', 'Gap', 'Event'), body)
  wrap.append(table)
  wrap.tabIndex = 0
  wrap.role = 'region'
  wrap.ariaLabel = 'Timeline of events'
  details.append(element('summary', '', 'Timeline'), said, wrap)
  details.addEventListener('toggle', show)

  /** Adds the entries that are new. A closed time line costs nothing while events arrive. */
  function show(): void {
    if (!details.open) return
    const entries = next()
    if (entries.length === 0) return
    summary = addToSummary(summary, entries)
    const room = SHOWN_EVENTS - body.rows.length
    body.append(...entries.slice(0, Math.max(0, room)).map(toRow))
    said.textContent = wordsFor(summary)
  }

  return {
    element: details,
    begin(answer: Answer): void {
      next = timelineReader(answer)
      summary = NONE
      body.replaceChildren()
      said.textContent = ''
    },
    show,
  }
}

function wordsFor({ events, tokens, heartbeats, longestGap }: TimelineSummary): string {
  const facts = [
    `${events} events`,
    `${tokens} with text`,
    `${heartbeats} heartbeats`,
    `longest gap ${duration(longestGap)}`,
  ]
  if (events > SHOWN_EVENTS) facts.push(`the first ${SHOWN_EVENTS} are shown`)
  return facts.join(' · ')
}

function headOf(...titles: string[]): HTMLElement {
  const head = element('thead', '')
  const row = element('tr', '')
  for (const title of titles) {
    const cell = element('th', '', title)
    cell.scope = 'col'
    row.append(cell)
  }
  head.append(row)
  return head
}

/** Width of the bar of a gap in pixels for each tenfold of a millisecond. */
const GAP_PIXELS = 10

function toRow({ at, gap, kind, text }: TimelineEntry): HTMLElement {
  const row = element('tr', kind)
  const length = element('td', '')
  const bar = element('i', '')
  bar.style.width = `${Math.round(GAP_PIXELS * Math.log10(1 + gap))}px`
  length.append(bar, ` ${duration(gap)}`)
  const shown = kind === 'token' ? JSON.stringify(text) : text
  row.append(element('td', '', duration(at)), length, element('td', '', shown))
  return row
}
