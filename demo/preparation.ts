/** Preparation of the selected model: what is downloaded for it at once, and what after a question. */
import type { ModelState, Server, Tag } from '../src/index.ts'
import { describeAdapter } from './device.ts'
import { byId } from './dom.ts'
import { bytes } from './format.ts'
import { GUIDE, type ListedModel } from './listing.ts'
import type { Loading } from './loading.ts'
import { EMBED } from './documentation.ts'
import { holdsSmolLM2, SMOLLM2, SMOLLM2_ORIGIN } from './smollm2.ts'
import type { StripAction } from './strip.ts'
import { troubleWith } from './trouble.ts'
import { AnswerError } from './wire/answer.ts'

/** Largest download in bytes from elsewhere that starts without a question to the visitor. */
const EAGER_BYTES = 32_000_000

/** Code of the error of a question whose model is not there. */
const UNAVAILABLE = 'model_unavailable'

interface Parts {
  starting: Promise<Server>
  loading: Loading
  select: HTMLSelectElement
  /** Returns `true` if the visitor can use the guide in place of the model. */
  canUseGuide(tag: Tag): boolean
  /** Selects a model. */
  use(tag: Tag): void
}

export interface Preparation {
  /** Notes that the visitor is about to ask, so that a small model may be downloaded. */
  want(): void
  /** Prepares the selected model as far as nobody has to be asked for it. */
  prepare(): Promise<void>
  /**
   * Asks before a large download, once for each model. Resolves with `true` if the model may be
   * downloaded.
   */
  consent(tag: Tag): Promise<boolean>
  /** Asks likewise. Rejects if the model may not be downloaded. */
  assertConsent(model: ListedModel): Promise<void>
}

export function createPreparation(parts: Parts): Preparation {
  const { starting, loading, select } = parts
  const place = byId('place', HTMLElement)
  const agreed = new Set<Tag>()
  let isWanted = false

  async function readState(tag: Tag): Promise<ModelState | undefined> {
    const { models } = await starting
    const states = await models.list()
    const state = states.find((one) => one.tag === tag)
    if (state && select.value === tag) place.textContent = await placeOf(state)
    return state
  }

  /** Resolves with `true` if the page's own server has the model, and this device holds it. */
  async function comesUnasked(tag: Tag): Promise<boolean> {
    return tag === SMOLLM2 && (await holdsSmolLM2(await (await starting).models.list()))
  }

  /** Resolves with the offer of SmolLM2 beside the guide, on devices that do not start with it. */
  async function offersBeside(tag: Tag): Promise<StripAction[]> {
    if (tag !== GUIDE) return []
    const states = await (await starting).models.list()
    const larger = states.find((state) => state.tag === SMOLLM2 && state.device !== null)
    if (!larger) return []
    const size = larger.status === 'remote' ? ` · ${bytes(larger.bytes ?? 0)}` : ''
    return [{ label: `Use ${larger.name}${size}`, run: () => parts.use(SMOLLM2) }]
  }

  /** Answers that are waited for, because a question can be asked while the visitor is asked. */
  const asked = new Map<Tag, Promise<boolean>>()

  function consent(tag: Tag): Promise<boolean> {
    const answer = asked.get(tag) ?? askConsent(tag).finally(() => asked.delete(tag))
    asked.set(tag, answer)
    return answer
  }

  async function askConsent(tag: Tag): Promise<boolean> {
    const state = await readState(tag)
    if (!state || state.status !== 'remote' || isSmall(state) || agreed.has(tag)) return true
    if (await comesUnasked(tag)) return true
    if (state.bytes === null) loading.wait(`Looking up the size of ${state.name} …`)
    // The first paint does without them.
    const [{ lookUp }, { askToDownload }] = await Promise.all([
      import('./look-up.ts'),
      import('./download-question.ts'),
    ])
    const facts = await lookUp(await starting, tag).catch((error: unknown) => {
      loading.clear()
      throw new AnswerError(troubleWith(state.name, error), 0, UNAVAILABLE)
    })
    loading.say(await announce(await starting, facts.state))
    if (isSmall(facts.state)) return true
    const answer = await askToDownload(facts, parts.canUseGuide(tag))
    if (answer === 'download') agreed.add(tag)
    if (answer === 'guide') parts.use(GUIDE)
    return answer === 'download'
  }

  return {
    want() {
      isWanted = true
    },
    async prepare() {
      const tag = select.value
      const [state, isUnasked] = await Promise.all([readState(tag), comesUnasked(tag)])
      if (!state || select.value !== tag) return
      if (state.status === 'remote' && !isUnasked && !(isSmall(state) && isWanted)) {
        const [words, offers] = [await announce(await starting, state), await offersBeside(tag)]
        // A question may have started the load meanwhile.
        if (select.value === tag && !(isSmall(state) && isWanted)) loading.say(words, offers)
        return
      }
      if (state.device === null) return
      if (isUnasked && state.status === 'remote') {
        loading.say(`${state.name} is next · ${bytes(state.bytes ?? 0)}, ${SMOLLM2_ORIGIN}`)
        await loadSmall(await starting)
        if (select.value !== tag) return
      }
      await loading.load(tag)
      // The page asks them, too, as long as it chooses who answers.
      if (isUnasked) await loadSmall(await starting)
    },
    consent,
    async assertConsent({ id, display_name: name }) {
      if (await consent(id)) return
      throw new AnswerError(`${name} was not downloaded, so nothing was asked.`, 0, UNAVAILABLE)
    },
  }
}

/**
 * Loads what answers questions about inorigin, which is a tenth of SmolLM2: a first question need not
 * wait for the larger download.
 */
async function loadSmall({ models }: Server): Promise<void> {
  await Promise.allSettled([models.load(EMBED), models.load(GUIDE)])
}

const isSmall = ({ bytes: size }: ModelState): boolean => size !== null && size <= EAGER_BYTES

/** Returns what the first question will download. */
async function announce(
  { storage }: Server,
  { name, bytes: size, device }: ModelState,
): Promise<string> {
  if (device === null && size !== null) return `${name} does not run on this device.`
  const what = size === null ? 'to be downloaded' : `${bytes(size)} to download`
  const assets = await storage.assets()
  const hasRuntime = assets.some(({ url }) => url.includes('/ort/'))
  const runtime = hasRuntime ? '' : ' The runtime is downloaded once: 14 to 27 MB.'
  return `${name}: ${what} with your first question.${runtime}`
}

async function placeOf({ device, bytes: size }: ModelState): Promise<string> {
  if (size === null) return 'Its files are looked up on the hub before a download'
  if (device === null) return 'This device cannot run this model'
  if (device === 'wasm') return 'Runs here, on WASM'
  return `Runs here, on WebGPU: ${await describeAdapter()}`
}
