/** Loads downloaded weights into a decoder that is ready to run. */
import { InoriginError } from '../../error.ts'
import type { LoadedDecoder, DecoderLoadOptions } from '../decoder-engine.ts'
import type { Files } from '../engine.ts'
import { loadingCancelled } from '../failure.ts'
import { retryOnLostGpu, settleWithTimeout } from '../gpu-retry.ts'
import { createDecoder } from './decoder/decoder.ts'
import { staysInHeap, staysOnDevice } from './decoder/graph.ts'
import { readOperations } from './decoder/operations.ts'
import { getModelFiles, type GraphFiles, type ModelFiles } from './model-files.ts'
import { loadRuntime, type Runtime, type Session } from './runtime.ts'
import { openTrusted } from './selftest/open.ts'
import { warmUp } from './warm.ts'

/** Options of {@link loadDecoder}. */
interface DecoderSetup extends DecoderLoadOptions {
  /** `true` to run every kind of forward pass once after loading. Default: `true`. */
  warm?: boolean
}

/**
 * Loads the decoder. Rejects with `unavailable` if the model, the runtime or the device cannot be
 * used, and with `aborted` when the signal aborts.
 */
export async function loadDecoder(
  options: DecoderSetup,
  weights: Files,
  signal: AbortSignal,
): Promise<LoadedDecoder> {
  const files = getModelFiles(weights)
  let opened = await open(options, files, signal)
  return {
    get decoder() {
      return opened.decoder
    },
    get verdict() {
      return opened.verdict
    },
    async reopen(until) {
      const verdict = opened.verdict ?? undefined
      await opened.release()
      // Requests are already waiting, and they warm the decoder up themselves.
      const cold = { ...options, verdict, warm: false }
      opened = await retryOnLostGpu(() => open(cold, files, until), until)
      return opened.decoder
    },
    release: () => opened.release(),
  }
}

type Opened = Omit<LoadedDecoder, 'reopen'>

async function open(
  options: DecoderSetup,
  { decoder: main, embed }: ModelFiles,
  signal: AbortSignal,
): Promise<Opened> {
  const { device, runtime: folder, features, verdict, threads, onWarm, warm = true } = options
  const releases: (() => unknown)[] = []
  const release = async (): Promise<void> => {
    for (const each of releases.splice(0).toReversed()) await settleWithTimeout(each())
  }
  const assertNotAborted = (): void => {
    if (signal.aborted) throw loadingCancelled()
  }
  const large = weightBytes(main) + weightBytes(embed) >= LARGE_WEIGHT_BYTES
  const session = async (runtime: Runtime, graph: GraphFiles): Promise<Session> => {
    assertNotAborted()
    const { externalData } = graph
    const sessionOptions = {
      externalData,
      compact: large,
      keepOnDevice: staysOnDevice,
      keepInHeap: staysInHeap,
    }
    const created = await runtime.createSession(graph.model, sessionOptions)
    releases.push(() => created.release())
    return created
  }

  try {
    assertNotAborted()
    const trusted =
      device === 'webgpu' ? await openTrusted({ folder, features, verdict }, signal) : null
    const runtime = trusted?.runtime ?? (await loadRuntime({ device, folder, large, threads }))
    if (trusted) releases.push(() => trusted.gpu.destroy())
    releases.push(() => runtime.release())
    const whole = await session(runtime, main)
    const sessions = embed ? { decoder: whole, embed: await session(runtime, embed) } : whole
    assertNotAborted()
    const operations = await readOperations(main.model)
    const decoder = createDecoder(runtime, sessions, { ...options, gpu: trusted?.gpu, operations })
    releases.push(() => decoder.close())
    if (warm) {
      onWarm?.()
      await warmUp(decoder, options, assertNotAborted)
    }
    assertNotAborted()
    return { decoder, verdict: trusted?.verdict ?? null, release }
  } catch (thrown) {
    await release()
    throw InoriginError.from(thrown)
  }
}

/** Size in bytes of weights from which low memory use matters more than a quick start. */
const LARGE_WEIGHT_BYTES = 150 * 2 ** 20

const weightBytes = (files: GraphFiles | undefined): number =>
  files?.externalData.reduce((bytes, { data }) => bytes + data.size, files.model.size) ?? 0
