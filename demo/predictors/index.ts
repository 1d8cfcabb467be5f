/** Any predictor of the catalog: a list of them, and a form for the one that is chosen. */
import type { Server } from '../../src/index.ts'
import { byId, element } from '../dom.ts'
import { wordsOf } from '../notice.ts'
import { createForm, type PredictorForm } from './form.ts'

/** Creates the part in its container. It lists the predictors once the server has started. */
export function createPredictors(starting: Promise<Server>): void {
  const place = byId('any-predictor', HTMLElement)
  const label = element('label', 'predictor-choice', 'Predictor')
  const select = element('select', '')
  const about = element('p', 'quiet')
  const said = element('p', 'predictor-problem')
  let shown: PredictorForm | undefined
  said.role = 'alert'
  select.id = 'predictor-choice'
  label.htmlFor = select.id
  select.append(new Option('Choose one', ''))
  place.replaceChildren(element('h2', '', 'Any predictor'), label, select, about, said)

  async function list(): Promise<void> {
    const server = await starting
    const states = await server.models.list()
    const options = states
      .filter(({ type }) => type === 'predictor')
      .map(({ tag, name }) => new Option(`${name} (${tag})`, tag))
    select.append(...options)
  }

  async function choose(tag: string): Promise<void> {
    shown?.close()
    shown?.element.remove()
    shown = undefined
    about.textContent = ''
    said.textContent = ''
    if (tag === '') return
    try {
      const server = await starting
      const handle = await server.predictor(tag)
      if (select.value !== tag) return
      shown = createForm(server, handle)
      about.textContent = handle.description
      place.append(shown.element)
    } catch (error) {
      said.textContent = wordsOf(error)
    }
  }

  select.addEventListener('change', () => void choose(select.value))
  list().catch((error: unknown) => (said.textContent = wordsOf(error)))
}
