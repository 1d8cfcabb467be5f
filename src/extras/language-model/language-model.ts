/** The interface `LanguageModel`, whose members behave as Web IDL says. */
import type { ModelState } from '../../types/index.ts'
import { neverAborted } from '../../validate-arguments.ts'
import { unlessAborted } from '../../values/promises.ts'
import { readStream } from '../../values/bytes.ts'
import { defineEventHandler, newCreateMonitor, ProgressReport } from './create-monitor.ts'
import type { Endpoint } from './endpoint.ts'
import { domException, quotaExceeded, toException } from './errors.ts'
import { canonicalize, readImages, toPrompt } from './messages.ts'
import {
  assertActive,
  assertOneSampling,
  PARAMS,
  toCoreOptions,
  toCreateOptions,
  toExpectedTypes,
  toPromptOptions,
  toSampling,
  toSignalOptions,
} from './options.ts'
import { Session, type SessionStart } from './session.ts'
import type {
  Availability,
  LanguageModelAnswer,
  LanguageModelChunk,
  LanguageModelCreateCoreOptions,
  LanguageModelCreateOptions,
  LanguageModelExpected,
  LanguageModelParams,
  LanguageModelPrompt,
  LanguageModelPromptOptions,
  LanguageModelSamplingMode,
  LanguageModelSignalOptions,
} from './types.ts'

/** A session with a language model. */
export interface LanguageModel extends EventTarget {
  /** Number of tokens in the context window. */
  readonly contextUsage: number
  /** Size of the context window in tokens. */
  readonly contextWindow: number
  /** `null` if the session was created with `topK` and `temperature`. */
  readonly samplingMode: LanguageModelSamplingMode | null
  /** Handler of the event that says that the oldest exchanges were dropped. */
  oncontextoverflow: ((this: LanguageModel, event: Event) => unknown) | null
  /** Resolves with the answer. */
  prompt(
    input: LanguageModelPrompt,
    options?: LanguageModelPromptOptions,
  ): Promise<LanguageModelAnswer>
  /** Returns the answer as a stream of its parts. */
  promptStreaming(
    input: LanguageModelPrompt,
    options?: LanguageModelPromptOptions,
  ): ReadableStream<LanguageModelChunk>
  /** Appends messages without an answer. */
  append(input: LanguageModelPrompt, options?: LanguageModelSignalOptions): Promise<undefined>
  /** Resolves with the number of tokens of a prompt. */
  measureContextUsage(
    input: LanguageModelPrompt,
    options?: LanguageModelPromptOptions,
  ): Promise<number>
  /** Resolves with another session that has the same messages. */
  clone(options?: LanguageModelSignalOptions): Promise<LanguageModel>
  /** Ends the session. All that it still does rejects with `AbortError`. */
  destroy(): void
  /** With `legacy` only: number of most probable tokens to choose from. */
  readonly topK?: number
  /** With `legacy` only: temperature of the sampler. */
  readonly temperature?: number
  /** With `legacy` only: the former name of `contextUsage`. */
  readonly inputUsage?: number
  /** With `legacy` only: the former name of `contextWindow`. */
  readonly inputQuota?: number
  /** With `legacy` only: the former name of `oncontextoverflow`. */
  onquotaoverflow?: ((this: LanguageModel, event: Event) => unknown) | null
  /** With `legacy` only: the former name of `measureContextUsage()`. */
  measureInputUsage?(
    input: LanguageModelPrompt,
    options?: LanguageModelPromptOptions,
  ): Promise<number>
}

/** The global `LanguageModel`. */
export interface LanguageModelConstructor {
  /** Throws: only `create()` makes sessions. */
  new (illegal: never): LanguageModel
  readonly prototype: LanguageModel
  /** Tells whether a session with these options can be created. */
  availability(options?: LanguageModelCreateCoreOptions): Promise<Availability>
  /** Resolves with a session, after the download of the model if that is necessary. */
  create(options?: LanguageModelCreateOptions): Promise<LanguageModel>
  /** With `legacy` only: resolves with the limits of the sampler. */
  params?(): Promise<LanguageModelParams | null>
}

const sessions = new WeakMap<object, { session: Session; make: Make }>()

/** Creates the object of a session. */
type Make = (start: SessionStart) => LanguageModel

function partsOf(model: unknown): { session: Session; make: Make } {
  const parts = sessions.get(model as object)
  if (parts) return parts
  throw new TypeError('Illegal invocation')
}

const sessionOf = (model: unknown): Session => partsOf(model).session

/** Converts the first argument of a method, with the checks in the order of Web IDL. */
function readCall(model: unknown, given: IArguments, method: string) {
  if (given.length === 0) throw new TypeError(`${method}() requires 1 argument, but got 0.`)
  const session = sessionOf(model)
  const prompt = toPrompt(given[0])
  assertActive()
  return { session, prompt }
}

/** The members of every session. They are copied, so that they are enumerable as in Web IDL. */
class Members {
  get contextUsage(): number {
    return sessionOf(this).contextUsage
  }

  get contextWindow(): number {
    return sessionOf(this).contextWindow
  }

  get samplingMode(): LanguageModelSamplingMode | null {
    return sessionOf(this).sampling.mode
  }

  async prompt(_input: unknown, options: unknown = {}): Promise<LanguageModelAnswer> {
    const { session, prompt } = readCall(this, arguments, 'prompt')
    return session.prompt(prompt, toPromptOptions(options), () => {})
  }

  promptStreaming(_input: unknown, options: unknown = {}): ReadableStream<LanguageModelChunk> {
    const { session, prompt } = readCall(this, arguments, 'promptStreaming')
    return streamPrompt(session, prompt, toPromptOptions(options))
  }

  async append(_input: unknown, options: unknown = {}): Promise<undefined> {
    const { session, prompt } = readCall(this, arguments, 'append')
    return session.append(prompt, toSignalOptions(options))
  }

  async measureContextUsage(_input: unknown, options: unknown = {}): Promise<number> {
    const { session, prompt } = readCall(this, arguments, 'measureContextUsage')
    return session.measure(prompt, toPromptOptions(options))
  }

  async clone(options: unknown = {}): Promise<LanguageModel> {
    const { session, make } = partsOf(this)
    assertActive()
    return make(await session.copy(toSignalOptions(options)))
  }

  destroy(): void {
    const reason = domException('AbortError', 'The session was destroyed.')
    sessionOf(this).destroy(reason)
  }
}

/** The members that only extensions have, and pages of earlier versions use. */
class LegacyMembers {
  get topK(): number {
    return sessionOf(this).sampling.topK
  }

  get temperature(): number {
    return sessionOf(this).sampling.temperature
  }

  get inputUsage(): number {
    return sessionOf(this).contextUsage
  }

  get inputQuota(): number {
    return sessionOf(this).contextWindow
  }

  async measureInputUsage(_input: unknown, options: unknown = {}): Promise<number> {
    const { session, prompt } = readCall(this, arguments, 'measureInputUsage')
    return session.measure(prompt, toPromptOptions(options))
  }
}

/** Defines the interface for one model. */
export function defineInterface(backend: Backend): LanguageModelConstructor {
  const key = Symbol('create')
  class Interface extends EventTarget {
    constructor(...given: unknown[]) {
      if (given[0] !== key) throw new TypeError('Illegal constructor')
      super()
    }

    static async availability(options: unknown = {}): Promise<Availability> {
      assertActive()
      const core = toCoreOptions(options)
      assertOneSampling(core, backend.legacy)
      return computeAvailability(backend, core)
    }

    static async create(options: unknown = {}): Promise<LanguageModel> {
      const { start, signal } = await createSessionStart(options, backend)
      const model = make(start)
      const { session } = partsOf(model)
      const end = () => session.destroy(signal?.reason)
      signal?.throwIfAborted()
      signal?.addEventListener('abort', end, { once: true, signal: session.ended })
      return model
    }
  }

  const make: Make = (start) => {
    const model = new Interface(key) as unknown as LanguageModel
    const names = ['contextoverflow', ...(backend.legacy ? ['quotaoverflow'] : [])]
    const session = new Session(start, () => {
      for (const name of names) model.dispatchEvent(new Event(name))
    })
    sessions.set(model, { session, make })
    return model
  }

  const { prototype } = Interface
  copyMembers(prototype, Members.prototype)
  defineEventHandler(prototype, 'contextoverflow')
  if (backend.legacy) {
    copyMembers(prototype, LegacyMembers.prototype)
    defineEventHandler(prototype, 'quotaoverflow')
    Object.assign(Interface, {
      params: async (): Promise<LanguageModelParams | null> =>
        (await computeAvailability(backend, {})) === 'unavailable' ? null : PARAMS,
    })
  }
  const name = { value: 'LanguageModel', configurable: true }
  const enumerable = { enumerable: true }
  Object.defineProperties(Interface, { name, availability: enumerable, create: enumerable })
  Object.defineProperty(prototype, Symbol.toStringTag, name)
  return Interface as unknown as LanguageModelConstructor
}

function copyMembers(target: object, source: object): void {
  const { constructor: _, ...members } = Object.getOwnPropertyDescriptors(source)
  for (const [name, descriptor] of Object.entries(members))
    Object.defineProperty(target, name, { ...descriptor, enumerable: true })
}

interface Backend {
  open: () => Promise<Endpoint>
  languages?: readonly string[]
  legacy: boolean
}

/** Runs the steps of `create()`. Rejects at once when the signal of the options aborts. */
async function createSessionStart(given: unknown, backend: Backend) {
  assertActive()
  const options = toCreateOptions(given)
  assertOneSampling(options, backend.legacy)
  const sampling = toSampling(options, backend.legacy)
  const { signal = neverAborted, initialPrompts = [], tools = [] } = options
  const expectedTypes = toExpectedTypes(options.expectedInputs)
  const initial =
    initialPrompts.length > 0 ? canonicalize(initialPrompts, expectedTypes, false) : []
  signal.throwIfAborted()
  const monitor = newCreateMonitor()
  options.monitor?.(monitor)
  const report = new ProgressReport(monitor, signal)

  async function start(): Promise<SessionStart> {
    const endpoint = await load(backend, options, report, signal)
    const { max_input_tokens: contextWindow } = await endpoint.fetchModelCard(signal)
    const toolTokens = await endpoint.countToolTokens(tools, signal)
    const messages = await readImages(initial)
    const usage = toolTokens + (await endpoint.countTokens(messages, signal))
    if (usage > contextWindow) throw quotaExceeded(usage, contextWindow)
    const state = { initial: messages, later: [], toolTokens, usage }
    return { endpoint, contextWindow, sampling, expectedTypes, tools, state }
  }

  const work = start().catch((thrown: unknown) => {
    throw toException(thrown, 'OperationError')
  })
  return { start: await unlessAborted(work, signal), signal: options.signal }
}

/** Loads the model. Resolves with the endpoint. */
async function load(
  backend: Backend,
  options: LanguageModelCreateOptions,
  report: ProgressReport,
  signal: AbortSignal,
): Promise<Endpoint> {
  const availability = await computeAvailability(backend, options)
  assertAvailable(availability)
  const endpoint = await backend.open()
  const { server, model } = endpoint
  const isThere = availability === 'available'
  if (isThere) report.end()
  const states = await server.models.list()
  if (states.find(({ tag }) => tag === model)?.servedBy !== 'upstream')
    await server.models.load(model, {
      signal,
      onProgress({ phase, loadedBytes, totalBytes }) {
        if (!isThere && phase === 'download') report.bytes(loadedBytes, totalBytes)
      },
    })
  if (!isThere) report.end()
  return endpoint
}

function assertAvailable(availability: Availability): void {
  if (availability === 'unavailable') {
    const what = 'No language model here has these options. Ask LanguageModel.availability() first.'
    throw domException('NotSupportedError', what)
  }
  const { userActivation } = globalThis.navigator ?? {}
  if (availability !== 'downloadable' || userActivation?.hasBeenActive !== false) return
  const what =
    'The model must be downloaded. Call LanguageModel.create() after a click of the user.'
  throw domException('NotAllowedError', what)
}

/** Resolves with the availability. Rejects with `UnknownError` if it cannot be found out. */
async function computeAvailability(
  { open, languages, legacy }: Backend,
  options: LanguageModelCreateCoreOptions,
): Promise<Availability> {
  const { expectedInputs = [], expectedOutputs = [] } = options
  const hasLanguages = [...expectedInputs, ...expectedOutputs].every((expected) =>
    knowsLanguages(expected, languages),
  )
  const hasOutputs = expectedOutputs.every(({ type }) => type === 'text' || type === 'tool-call')
  if (!hasLanguages || !hasOutputs || !hasSampling(options, legacy)) return 'unavailable'
  try {
    const endpoint = await open()
    const states = await endpoint.server.models.list()
    const state = states.find(({ tag }) => tag === endpoint.model)
    const availability = state?.type === 'model' ? toAvailability(state) : 'unavailable'
    const types = expectedInputs.map(({ type }) => type)
    if (types.includes('audio')) return 'unavailable'
    if (availability === 'unavailable' || !types.includes('image')) return availability
    const { capabilities } = await endpoint.fetchModelCard(neverAborted)
    return capabilities.image_input.supported ? availability : 'unavailable'
  } catch (thrown) {
    throw toException(thrown, 'UnknownError')
  }
}

function toAvailability({ status, servedBy, device, bytes }: ModelState): Availability {
  // The size of a hub's model is unknown until its files were looked up, and so is its fit.
  const isUnfit = servedBy === null && device === null && bytes !== null
  if (isUnfit) return 'unavailable'
  if (servedBy === 'upstream' || status === 'loaded' || status === 'stored') return 'available'
  return status === 'loading' ? 'downloading' : 'downloadable'
}

function hasSampling(options: LanguageModelCreateCoreOptions, legacy: boolean): boolean {
  try {
    toSampling(options, legacy)
    return true
  } catch {
    return false
  }
}

/** Returns `true` if the model knows the languages, or a language of which each is a variety. */
const knowsLanguages = (
  { languages: wanted = [] }: LanguageModelExpected,
  known: readonly string[] | undefined,
): boolean =>
  wanted.every((tag) => {
    const { language } = new Intl.Locale(tag)
    return known
      ? known.some((one) => new Intl.Locale(one).language === language)
      : names.of(language) !== undefined
  })

const names = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' })

/**
 * Prompts the session. The stream ends with the answer, or errors as `prompt()` rejects. Canceling it
 * ends the prompt, which leaves no trace in the session.
 *
 * @throws the reason of a signal that is aborted already.
 */
function streamPrompt(
  session: Session,
  prompt: LanguageModelPrompt,
  options: LanguageModelPromptOptions,
): ReadableStream<LanguageModelChunk> {
  session.ended.throwIfAborted()
  options.signal?.throwIfAborted()
  const canceling = new AbortController()
  const signal = AbortSignal.any([canceling.signal, options.signal ?? neverAborted])
  const stream = new ReadableStream<LanguageModelChunk>({
    start(controller) {
      const write = (part: LanguageModelChunk): void => controller.enqueue(part)
      session.prompt(prompt, { ...options, signal }, write).then(
        (answer) => {
          if (canceling.signal.aborted) return
          const parts = typeof answer === 'string' ? [] : answer
          // Their text was written before.
          for (const part of parts) if (part.type !== 'text') write(part)
          controller.close()
        },
        (thrown: unknown) => {
          if (!canceling.signal.aborted) controller.error(thrown)
        },
      )
    },
    cancel() {
      canceling.abort()
    },
  })
  // The streams of some browsers, such as WebKit's, have no iterator.
  if (!(Symbol.asyncIterator in stream))
    Object.defineProperty(stream, Symbol.asyncIterator, { value: () => readStream(stream) })
  return stream
}
