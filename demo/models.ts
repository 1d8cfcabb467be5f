import type { ModelState, Server, Tag } from '../src/index.ts'
import { describeAdapter } from './device.ts'
import { byId, element } from './dom.ts'
import { askToDownload } from './download-question.ts'
import { bytes } from './format.ts'
import { keepModel, keptModel } from './kept.ts'
import type { Loading } from './loading.ts'
import { lookUp } from './look-up.ts'
import { notice, wordsOf } from './notice.ts'
import type { StripAction } from './strip.ts'
import { troubleWith } from './trouble.ts'
import { whenWanted } from './wanted.ts'
import { AnswerError } from './wire/answer.ts'

/** Largest download in bytes that starts without a question to the visitor. */
const EAGER_BYTES = 32_000_000

/** Model that comes with the page, so it needs no other site. */
const GUIDE = '@inorigin/guide'

/** Code of the error of a question whose model is not there. */
const UNAVAILABLE = 'model_unavailable'

const reload = { label: 'Reload', run: () => location.reload() }

/** Part of an element of `GET /v1/models` that the playground reads. */
export interface ListedModel {
  id: Tag
  display_name: string
  max_tokens?: number | null
  max_input_tokens?: number | null
  capabilities?: Record<string, { supported?: boolean } | undefined> | null
}

export interface Models {
  /**
   * Resolves with the selected model once the listing has arrived, and the visitor has agreed to a
   * large download.
   */
  chosen(): Promise<ListedModel>
  /** Resolves with the selected model, if any, once the listing has arrived. It downloads nothing. */
  selected(): Promise<ListedModel | undefined>
  /** Selects a model that chats, as if the visitor had done it. */
  select(tag: Tag): void
  /** Reads the listing and the states again, for example after a download or an import. */
  refresh(): Promise<void>
  /** Returns the ways out if the selected model cannot be loaded. */
  remedies(): readonly StripAction[]
}

/** Creates the selector of models: those that `GET /v1/models` lists and that chat. */
export function createModels(starting: Promise<Server>, loading: Loading): Models {
  const select = byId('model', HTMLSelectElement)
  const place = byId('place', HTMLElement)
  const { isOffered, refresh } = createListing(starting, select)
  let isWanted = false

  const remedies = (tag: Tag): readonly StripAction[] =>
    tag === GUIDE || !isOffered(GUIDE) ? [] : [{ label: 'Use the guide', run: () => choose(GUIDE) }]

  /** Prepares the selected model as far as nobody has to be asked for it. */
  async function prepare(): Promise<void> {
    const tag = select.value
    const state = await readState(tag)
    if (!state || select.value !== tag) return
    if (state.status === 'remote' && !(isSmall(state) && isWanted)) {
      const words = await announce(await starting, state)
      // A question may have started the load meanwhile.
      if (select.value === tag && !(isSmall(state) && isWanted)) loading.say(words)
    } else if (state.device !== null) await loading.load(tag)
  }

  async function readState(tag: Tag): Promise<ModelState | undefined> {
    const { models } = await starting
    const states = await models.list()
    const state = states.find((one) => one.tag === tag)
    if (state && select.value === tag) place.textContent = await placeOf(state)
    return state
  }

  const consent = createConsent({
    starting,
    loading,
    readState,
    canUseGuide: (tag) => remedies(tag).length > 0,
    useGuide: () => choose(GUIDE),
  })

  function choose(tag: Tag): void {
    select.value = tag
    keepModel(tag)
    isWanted = true
    void consent(tag).then(
      (isFine) => {
        if (isFine && select.value === tag) loading.load(tag).catch(ignore)
      },
      (error: unknown) => {
        const again = { label: 'Try again', run: () => choose(tag) }
        loading.say(wordsOf(error), [again, ...remedies(tag)])
      },
    )
  }

  let listing = refresh()
  listing.then(prepare).catch((error: unknown) => {
    if (select.options.length > 0 && select.value !== '' && !select.disabled) return
    select.replaceChildren(new Option('No model', ''))
    // A server that did not start has shown its own error.
    if (window.inorigin) notice(`The models could not be listed. ${wordsOf(error)}`, 'bad', reload)
  })
  select.addEventListener('change', () => choose(select.value))
  loading.onFailure(remedies)
  // A model that was loaded is on this device now.
  loading.onEnd(() => void refresh().catch(ignore))
  whenWanted(() => {
    isWanted = true
    void listing.then(prepare).catch(ignore)
  })

  return {
    async chosen() {
      isWanted = true
      const models = await listing.catch(() => (listing = refresh()))
      const model = models.find(({ id }) => id === select.value)
      if (!model) throw new Error('The catalog lists no chat model. Use another catalog.')
      if (await consent(model.id)) return model
      const what = `${model.display_name} was not downloaded, so nothing was asked.`
      throw new AnswerError(what, 0, UNAVAILABLE)
    },
    async selected() {
      return (await listing).find(({ id }) => id === select.value)
    },
    select(tag) {
      // A model that was just added may not be in the listing yet.
      const listed = isOffered(tag) ? Promise.resolve() : refresh()
      void listed.then(() => choose(tag)).catch(ignore)
    },
    async refresh() {
      listing = refresh()
      await listing
    },
    remedies: () => remedies(select.value),
  }
}

/** Creates the list of the selector. */
function createListing(starting: Promise<Server>, select: HTMLSelectElement) {
  const isOffered = (tag: string): boolean => [...select.options].some(({ value }) => value === tag)
  return {
    isOffered,
    /** Fills the selector anew. Resolves with the models that it offers. */
    async refresh(): Promise<ListedModel[]> {
      const server = await starting
      const [models, states] = await Promise.all([list(server), server.models.list()])
      const before = select.value
      select.replaceChildren(...toGroups(models, states))
      // The user named a catalog in the address to use its models, which come first.
      const own = new URLSearchParams(location.search).has('catalog') ? models[0]?.id : undefined
      const kept = [before, own, keptModel(), GUIDE].find((tag) => tag && isOffered(tag))
      select.value = kept ?? models[0]?.id ?? ''
      select.disabled = select.value === ''
      return models
    },
  }
}

interface ConsentParts {
  starting: Promise<Server>
  loading: Loading
  readState(tag: Tag): Promise<ModelState | undefined>
  /** Returns `true` if the visitor can use the guide in place of the model. */
  canUseGuide(tag: Tag): boolean
  useGuide(): void
}

/**
 * Creates the question before a large download, which a visitor answers once for each model. The
 * function resolves with `true` if the model may be downloaded.
 */
function createConsent(parts: ConsentParts): (tag: Tag) => Promise<boolean> {
  const { starting, loading } = parts
  const agreed = new Set<Tag>()
  return async (tag) => {
    const state = await parts.readState(tag)
    if (!state || state.status !== 'remote' || isSmall(state) || agreed.has(tag)) return true
    if (state.bytes === null) loading.wait(`Looking up the size of ${state.name} …`)
    const facts = await lookUp(await starting, tag).catch((error: unknown) => {
      loading.clear()
      throw new AnswerError(troubleWith(state.name, error), 0, UNAVAILABLE)
    })
    loading.say(await announce(await starting, facts.state))
    if (isSmall(facts.state)) return true
    const answer = await askToDownload(facts, parts.canUseGuide(tag))
    if (answer === 'download') agreed.add(tag)
    if (answer === 'guide') parts.useGuide()
    return answer === 'download'
  }
}

const isSmall = ({ bytes: size }: ModelState): boolean => size !== null && size <= EAGER_BYTES

async function list(server: Server): Promise<ListedModel[]> {
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
  const size = states.find(({ tag }) => tag === model.id)?.bytes
  const option = element('option', '', model.display_name + (size ? ` · ${bytes(size)}` : ''))
  option.value = model.id
  option.title = model.id
  return option
}

/** Returns what the first question will download. */
async function announce(
  { storage }: Server,
  { name, bytes: size, device }: ModelState,
): Promise<string> {
  if (device === null && size !== null) return `${name} does not run on this device.`
  const what = size === null ? 'to be downloaded' : `${bytes(size)} to download`
  const assets = await storage.assets()
  const hasRuntime = assets.some(({ url }) => url.includes('/ort/'))
  const runtime = hasRuntime ? '' : ' The runtime follows once: 14 to 27 MB.'
  return `${name}: ${what} with your first question.${runtime}`
}

async function placeOf({ device, bytes: size }: ModelState): Promise<string> {
  if (size === null) return 'Its files are looked up on the hub before a download'
  if (device === null) return 'This device cannot run this model'
  if (device === 'wasm') return 'Runs here, on WASM'
  return `Runs here, on WebGPU: ${await describeAdapter()}`
}

/** Ignores a failed load, because the strip above the composer shows it. */
function ignore(): void {}
