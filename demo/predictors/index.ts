/** The predictors: three examples, and a form for any one of the catalog. */
import type { Server } from '../../src/index.ts'
import { createDigits } from '../digits.ts'
import { byId, element } from '../dom.ts'
import { createEdges } from '../edges.ts'
import { createLikeness } from '../likeness.ts'
import { wordsOf } from '../notice.ts'
import { createForm, type PredictorForm } from './form.ts'

/** Creates the predictors in their tab, which takes no input before. */
export function createPredictors(starting: Promise<Server>): void {
  createDigits(starting)
  createEdges(starting)
  createLikeness(starting)
  createAnyPredictor(starting)
  byId('predictors', HTMLElement).inert = false
}

/** Lists the predictors once the server has started, and creates the form of the one that is chosen. */
function createAnyPredictor(starting: Promise<Server>): void {
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
