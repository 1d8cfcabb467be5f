/** The interface `LanguageModel`, whose members behave as Web IDL says. */
import { assertArguments } from './conversions.ts'
import { computeAvailability } from './availability.ts'
import { type Backend, createSessionStart } from './create-session.ts'
import { defineEventHandler } from './event-handler.ts'
import { domException } from './errors.ts'
import { toPrompt } from './messages.ts'
import { assertActive, toCoreOptions, toPromptOptions, toSignalOptions } from './options.ts'
import { assertOneSampling, PARAMS } from './sampling.ts'
import { createSession, type Session, type SessionStart } from './session.ts'
import { streamPrompt } from './stream-prompt.ts'
import type {
  Availability,
  LanguageModelAnswer,
  LanguageModelChunk,
  LanguageModelCreateCoreOptions,
  LanguageModelCreateOptions,
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

const noop = (): void => {}

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

  async prompt(input: unknown, options: unknown = {}): Promise<LanguageModelAnswer> {
    assertArguments(arguments.length, 1, 'prompt()')
    const session = sessionOf(this)
    const prompt = toPrompt(input)
    assertActive()
    return session.prompt(prompt, toPromptOptions(options), noop)
  }

  promptStreaming(input: unknown, options: unknown = {}): ReadableStream<LanguageModelChunk> {
    assertArguments(arguments.length, 1, 'promptStreaming()')
    const session = sessionOf(this)
    const prompt = toPrompt(input)
    assertActive()
    return streamPrompt(session, prompt, toPromptOptions(options))
  }

  async append(input: unknown, options: unknown = {}): Promise<undefined> {
    assertArguments(arguments.length, 1, 'append()')
    const session = sessionOf(this)
    const prompt = toPrompt(input)
    assertActive()
    return session.append(prompt, toSignalOptions(options))
  }

  async measureContextUsage(input: unknown, options: unknown = {}): Promise<number> {
    assertArguments(arguments.length, 1, 'measureContextUsage()')
    const session = sessionOf(this)
    const prompt = toPrompt(input)
    assertActive()
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

  async measureInputUsage(input: unknown, options: unknown = {}): Promise<number> {
    assertArguments(arguments.length, 1, 'measureInputUsage()')
    const session = sessionOf(this)
    return session.measure(toPrompt(input), toPromptOptions(options))
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
      return computeAvailability(backend.open, core, backend)
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
    const session = createSession(start, () => {
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
    defineParams(Interface, backend)
  }
  const name = { value: 'LanguageModel', configurable: true }
  Object.defineProperties(Interface, { name, availability: enumerable, create: enumerable })
  Object.defineProperty(prototype, Symbol.toStringTag, name)
  return Interface as unknown as LanguageModelConstructor
}

const enumerable: PropertyDescriptor = { enumerable: true }

function copyMembers(target: object, source: object): void {
  const { constructor: _, ...members } = Object.getOwnPropertyDescriptors(source)
  for (const [name, descriptor] of Object.entries(members)) {
    Object.defineProperty(target, name, { ...descriptor, enumerable: true })
  }
}

function defineParams(target: object, backend: Backend): void {
  const params = async (): Promise<LanguageModelParams | null> => {
    const availability = await computeAvailability(backend.open, {}, backend)
    return availability === 'unavailable' ? null : PARAMS
  }
  Object.defineProperty(target, 'params', {
    value: params,
    enumerable: true,
    configurable: true,
    writable: true,
  })
}
