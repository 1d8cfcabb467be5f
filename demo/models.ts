import type { ModelState, Server, Tag } from '../src/index.ts'
import { describeAdapter } from './device.ts'
import { byId, element } from './dom.ts'
import { bytes } from './format.ts'
import type { Loading } from './loading.ts'
import { notice, wordsOf } from './notice.ts'

/** Largest download in bytes that starts with the page. A larger one waits for a question. */
const EAGER_BYTES = 32_000_000

const reload = { label: 'Reload', run: () => location.reload() }

/** Part of an element of `GET /v1/models` that the playground reads. */
export interface ListedModel {
  id: Tag
  display_name: string
  max_tokens?: number | null
  capabilities?: { embeddings?: { supported: boolean } } | null
}

export interface Models {
  /** Resolves with the selected model once the listing has arrived. */
  chosen(): Promise<ListedModel>
  /** Locks or unlocks the selector. */
  lock(locked: boolean): void
}

/** Creates the selector of models: those that `GET /v1/models` lists and that chat. */
export function createModels(starting: Promise<Server>, loading: Loading): Models {
  const select = byId('model', HTMLSelectElement)
  const place = byId('place', HTMLElement)
  let locked = false

  async function prepare(): Promise<void> {
    const server = await starting
    const tag = select.value
    const states = await server.models.list()
    const state = states.find((one) => one.tag === tag)
    if (!state || select.value !== tag) return
    place.textContent = await placeOf(state)
    const size = state.bytes
    if (state.status === 'remote' && (size === null || size > EAGER_BYTES)) {
      const what = size === null ? 'to be downloaded' : `${bytes(size)} to download`
      loading.say(`${state.name}: ${what} with your first question.`)
    } else await loading.load(tag)
  }

  async function refresh(): Promise<ListedModel[]> {
    const models = await starting.then(list)
    select.replaceChildren(...models.map(toOption))
    // The user named a catalog in the address to use its models, which come first.
    const own = new URLSearchParams(location.search).has('catalog') ? models[0] : undefined
    if (own) select.value = own.id
    select.disabled = locked
    prepare().catch(ignore)
    return models
  }

  let listing = refresh()
  listing.catch((error: unknown) => {
    select.replaceChildren(new Option('No model', ''))
    // A server that did not start has shown its own error.
    if (window.inorigin) notice(`The models could not be listed. ${wordsOf(error)}`, 'bad', reload)
  })
  select.addEventListener('change', () => void prepare().catch(ignore))

  return {
    async chosen() {
      const models = await listing.catch(() => (listing = refresh()))
      const model = models.find(({ id }) => id === select.value)
      if (!model) throw new Error('The catalog lists no chat model. Use another catalog.')
      return model
    },
    lock(next) {
      locked = next
      select.disabled = locked || select.value === ''
    },
  }
}

async function list(server: Server): Promise<ListedModel[]> {
  const ask = server.controlled ? fetch : server.fetch
  const response = await ask(`${server.baseURL}/models`)
  const body = (await response.json()) as { data: ListedModel[]; error?: { message: string } }
  if (!response.ok)
    throw new Error(body.error?.message ?? `GET /v1/models failed: ${response.status}.`)
  return body.data.filter(({ capabilities }) => !capabilities?.embeddings?.supported)
}

function toOption(model: ListedModel): HTMLOptionElement {
  const option = element('option', '', model.display_name)
  option.value = model.id
  option.title = model.id
  return option
}

async function placeOf({ device, bytes: size }: ModelState): Promise<string> {
  if (size === null) return 'Its files are looked up on the hub with your first question'
  if (device === null) return 'This device cannot run this model'
  if (device === 'wasm') return 'Runs here, on WASM'
  return `Runs here, on WebGPU: ${await describeAdapter()}`
}

/** Ignores a failed load, because the strip above the composer shows it. */
function ignore(): void {}
