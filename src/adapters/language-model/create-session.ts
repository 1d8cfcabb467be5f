/** The steps of `create()`: the options, the download, and the first messages. */
import { unlessAborted } from '../../values/unless-aborted.ts'
import { computeAvailability } from './availability.ts'
import { createProgressReport, newCreateMonitor, type ProgressReport } from './create-monitor.ts'
import { type Endpoint, fetchModelCard } from './endpoint.ts'
import { domException, quotaExceeded, toException } from './errors.ts'
import { readImages } from './images.ts'
import { canonicalize } from './messages.ts'
import { assertActive, toCreateOptions, toExpectedTypes } from './options.ts'
import { assertOneSampling, type Sampling, toSampling } from './sampling.ts'
import type { SessionStart } from './session.ts'
import { countTokens, countToolTokens } from './tokens.ts'
import type { Availability, LanguageModelCreateOptions, Message } from './types.ts'

/** The model behind a `LanguageModel`, and what it takes. */
export interface Backend {
  open: () => Promise<Endpoint>
  languages?: readonly string[]
  legacy: boolean
}

/** Everything that a new session needs, and the signal that ends it. */
export interface CreatedSession {
  start: SessionStart
  signal: AbortSignal | undefined
}

const neverAborted = new AbortController().signal

/** Runs the steps of `create()`. Rejects at once when the signal of the options aborts. */
export async function createSessionStart(
  given: unknown,
  backend: Backend,
): Promise<CreatedSession> {
  assertActive()
  const options = toCreateOptions(given)
  assertOneSampling(options, backend.legacy)
  const sampling = toSampling(options, backend.legacy)
  const { signal, initialPrompts = [] } = options
  const expectedTypes = toExpectedTypes(options.expectedInputs)
  const initial =
    initialPrompts.length > 0 ? canonicalize(initialPrompts, expectedTypes, false) : []
  signal?.throwIfAborted()
  const monitor = newCreateMonitor()
  options.monitor?.(monitor)
  const report = createProgressReport(monitor, signal ?? neverAborted)
  const work = load(backend, options, report)
    .then((endpoint) => start(endpoint, options, { initial, sampling, expectedTypes }))
    .catch((thrown: unknown) => {
      throw toException(thrown, 'OperationError')
    })
  return { start: await unlessAborted(work, signal ?? neverAborted), signal }
}

/** Downloads the model if that is necessary, and loads it into memory. */
async function load(
  backend: Backend,
  options: LanguageModelCreateOptions,
  report: ProgressReport,
): Promise<Endpoint> {
  const availability = await computeAvailability(backend.open, options, backend)
  assertAvailable(availability)
  const endpoint = await backend.open()
  const { server, model } = endpoint
  if (availability === 'available') report.end()
  const states = await server.models.list()
  const isLocal = states.find(({ tag }) => tag === model)?.servedBy !== 'upstream'
  if (isLocal) {
    await server.models.load(model, {
      ...(options.signal && { signal: options.signal }),
      onProgress({ phase, loadedBytes, totalBytes }) {
        const isDownload = availability !== 'available' && phase === 'download'
        if (isDownload) report.bytes(loadedBytes, totalBytes)
      },
    })
  }
  if (availability !== 'available') report.end()
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

/** Reads the first messages and counts their tokens. */
async function start(
  endpoint: Endpoint,
  { tools = [], signal = neverAborted }: LanguageModelCreateOptions,
  {
    initial,
    ...rest
  }: { initial: readonly Message[]; sampling: Sampling } & Pick<SessionStart, 'expectedTypes'>,
): Promise<SessionStart> {
  const { max_input_tokens: contextWindow } = await fetchModelCard(endpoint, signal)
  const toolTokens = await countToolTokens(endpoint, tools, signal)
  const messages = await readImages(initial)
  const usage = toolTokens + (await countTokens(endpoint, messages, signal))
  if (usage > contextWindow) throw quotaExceeded(usage, contextWindow)
  const state = { initial: messages, later: [], toolTokens, usage }
  return { endpoint, contextWindow, tools, state, ...rest }
}
