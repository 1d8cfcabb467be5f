/** The models that chat, in the selector. */
import type { ModelState, Server, Tag } from '../src/index.ts'
import { byId, element } from './dom.ts'
import { bytes } from './format.ts'
import { keptModel } from './kept.ts'
import { noteName } from './names.ts'
import { holdsSmolLM2, SMOLLM2 } from './smollm2.ts'

/** Model that comes with the page, so it needs no other site. */
export const GUIDE = '@inorigin/guide'

/** Model that comes with the page and sees simple pictures. */
const GLANCE = '@inorigin/glance'

/** Part of an element of `GET /v1/models` that the playground reads. */
export interface ListedModel {
  id: Tag
  display_name: string
  max_tokens?: number | null
  max_input_tokens?: number | null
  description?: string
  license?: string
  languages?: readonly string[]
  parameters?: string
  quantization?: string
  capabilities?: Record<string, { supported?: boolean } | undefined> | null
}

export interface Listing {
  /** Returns `true` if the selector has the model. */
  isOffered(tag: string): boolean
  /** Fills the selector anew. Resolves with the models that it offers. */
  refresh(): Promise<ListedModel[]>
}

/** Creates the list of the selector. */
export function createListing(starting: Promise<Server>, select: HTMLSelectElement): Listing {
  const shown = byId('model-name', HTMLElement)
  /** Shows the whole name of the selected model, which a selector would cut where it is narrow. */
  const show = (): void => {
    const { label = '', dataset } = select.selectedOptions[0] ?? new Option('No model')
    shown.replaceChildren(dataset['name'] ?? label, element('span', 'model-size', dataset['size']))
  }
  select.addEventListener('change', show)
  const isOffered = (tag: string): boolean => [...select.options].some(({ value }) => value === tag)
  return {
    isOffered,
    async refresh() {
      const server = await starting
      const [models, states] = await Promise.all([listChatModels(server), server.models.list()])
      const before = select.value
      select.replaceChildren(...toGroups(models, states))
      // The user named a catalog in the address to use its models, which come first.
      // The playground's own model comes first if the user declined to load that catalog.
      const isNamed = new URLSearchParams(location.search).has('catalog')
      const own = isNamed ? models.find(({ id }) => id !== SMOLLM2)?.id : undefined
      const preferred = (await holdsSmolLM2(states)) ? SMOLLM2 : GUIDE
      const kept = [before, own, keptModel(), preferred, GUIDE].find((tag) => tag && isOffered(tag))
      select.value = kept ?? models[0]?.id ?? ''
      select.disabled = select.value === ''
      show()
      return models
    },
  }
}

/**
 * Returns the model that answers a question with images: the selected one if it takes them, else the
 * one that comes with the page. Returns `undefined` if neither does.
 */
export function findSeeing(
  models: readonly ListedModel[],
  selected: ListedModel,
): ListedModel | undefined {
  if (selected.capabilities?.['image_input']?.supported !== false) return selected
  return models.find(({ id }) => id === GLANCE)
}

/** Resolves with the models of `GET /v1/models` that chat. */
export async function listChatModels(server: Server): Promise<ListedModel[]> {
  const models = await listModels(server)
  return models.filter(({ capabilities }) => !capabilities?.['embeddings']?.supported)
}

/** Resolves with all models of `GET /v1/models`. */
export async function listModels(server: Server): Promise<ListedModel[]> {
  const ask = server.controlled ? fetch : server.fetch
  const response = await ask(`${server.baseURL}/models`)
  const body = (await response.json()) as { data: ListedModel[]; error?: { message: string } }
  if (!response.ok)
    throw new Error(body.error?.message ?? `GET /v1/models failed: ${response.status}.`)
  return body.data
}

/** Returns the options of the selector: the models on this device first, then the others. */
function toGroups(models: readonly ListedModel[], states: readonly ModelState[]): HTMLElement[] {
  const isHere = ({ id }: ListedModel): boolean =>
    states.some(({ tag, status }) => tag === id && status !== 'remote')
  const groups = [
    ['On this device', models.filter(isHere)],
    ['To download', models.filter((model) => !isHere(model))],
  ] as const
  return groups.flatMap(([label, members]) => {
    if (members.length === 0) return []
    const group = element('optgroup', '')
    group.label = label
    group.append(...members.map((model) => toOption(model, states)))
    return [group]
  })
}

function toOption(model: ListedModel, states: readonly ModelState[]): HTMLOptionElement {
  const { id, display_name: name } = model
  const count = states.find(({ tag }) => tag === id)?.bytes
  const size = count ? ` · ${bytes(count)}` : ''
  const option = element('option', '', name + size)
  noteName(id, name)
  Object.assign(option.dataset, { name, size })
  option.value = id
  option.title = id
  return option
}
