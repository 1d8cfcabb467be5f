/** The model that is recommended for this device, with one button. The device is measured for it once. */
import type { Server, Tag } from '../../src/index.ts'
import { button, element } from '../dom.ts'
import { probeDevice } from '../probe/probe.ts'
import { findRecommendation, type DevicePlace, type Recommendation } from '../recommendation.ts'

interface RecommendedOptions {
  server: Server
  /** Promise of the facts of this device; of `undefined` if they cannot be read. */
  place: Promise<DevicePlace | undefined>
  signal: AbortSignal
  /** Selects a model for the chat. */
  use(tag: Tag): void
}

export function createRecommended({ server, place, signal, use }: RecommendedOptions): HTMLElement {
  const section = element('section', 'recommended')
  const head = element('h2', '', 'Recommended for this device')
  const card = element('div', '')
  const said = element('p', 'quiet')
  head.id = 'recommended-model'
  section.setAttribute('aria-labelledby', head.id)
  section.append(head, card, said)
  section.hidden = true
  said.role = 'status'

  function show(found: Recommendation | undefined): void {
    section.hidden = found === undefined
    if (!found) return
    const { tag, name, facts } = found
    const row = element('div', 'row')
    row.append(button(`Use ${name}`, 'plain strong', () => use(tag)))
    card.replaceChildren(element('h3', '', name), element('p', '', facts.join(' · ')), row)
  }

  async function run(): Promise<void> {
    const known = await place
    if (!known) return
    show(await findRecommendation(server, known))
    if (known.speed) return
    said.textContent =
      'This device is measured for 2 s when it answers nothing, for an estimate of speed.'
    const speed = await probeDevice(server, known.summary, signal)
    said.textContent = ''
    if (speed) show(await findRecommendation(server, { ...known, speed }))
  }

  // Without a recommendation, the cards are there all the same.
  run().catch(() => (said.textContent = ''))
  return section
}
