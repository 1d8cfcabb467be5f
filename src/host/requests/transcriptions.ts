/** The operation that writes down speech. A page decodes the files, because workers cannot. */
import { findTranscriber } from '../../catalog/find-entry.ts'
import type { PredictorEntry } from '../../catalog/schema.ts'
import { InoriginError } from '../../error.ts'
import { mixChannels, readWav, type Sound } from '../../predictor/audio.ts'
import { assertTranscribes } from '../../predictor/speech.ts'
import type { Caller, Host, TranscriptionEvent, TranscriptionRequest } from '../../types/index.ts'
import { unlessAborted } from '../../values/promises.ts'
import type { Entries } from '../library/entries.ts'
import type { HostToPage, PageToHost } from '../messages.ts'
import { createRetryPolicy, type Leases, waitUntilLoaded } from './leases.ts'

interface TranscriptionOptions {
  entries: Entries
  leases: Leases
  /** Resolves with the sound of a file that is no WAV file. */
  decode(file: Blob, signal: AbortSignal): Promise<Sound>
}

export function createTranscriptions({ entries, leases, decode }: TranscriptionOptions) {
  async function* transcribe(
    entry: PredictorEntry,
    { file, isStreamed, ...options }: TranscriptionRequest,
    caller: Caller,
  ): AsyncGenerator<TranscriptionEvent> {
    const { signal } = caller
    const wav = readWav(new Uint8Array(await file.arrayBuffer()))
    const sound = wav ? { ...wav, data: mixChannels(wav.data) } : await decode(file, signal)
    const shouldRetry = createRetryPolicy()
    let hasBegun = false
    for (;;) {
      const lease = await leases.acquire(entry, signal)
      const { instance, release } = lease
      try {
        await waitUntilLoaded(lease, signal)
        const { events } = await instance.worker.transcribe({ ...options, sound }, caller)
        for await (const event of events) {
          if (event.type === 'text' && !isStreamed) continue
          hasBegun = true
          yield event
        }
        return
      } catch (thrown) {
        const error = await instance.explainFailure(thrown)
        // The client has read a part, which cannot be written again.
        if (hasBegun || !shouldRetry(error)) throw error
      } finally {
        release()
      }
    }
  }

  return {
    transcribe: async (request, caller) => {
      await leases.lookUp(request.model, caller.signal)
      const entry = findTranscriber({ entries: await entries.all() }, request.model)
      assertTranscribes(entry, request)
      return { events: transcribe(entry, request, caller) }
    },
  } satisfies Partial<Host>
}

type DecodedMessage = Extract<PageToHost, { type: 'decoded' }>

/** Has the page of this worker decode files of sound. */
export class SoundDecoder {
  #post: (message: HostToPage) => void
  #waiting = new Map<number, (message: DecodedMessage) => void>()
  #lastId = 0

  constructor(post: (message: HostToPage) => void) {
    this.#post = post
  }

  /** Resolves with the sound of a file. Rejects with `invalid_request` if the browser cannot decode it. */
  async decode(file: Blob, signal: AbortSignal): Promise<Sound> {
    const id = (this.#lastId += 1)
    const decoded = new Promise<DecodedMessage>((resolve) => this.#waiting.set(id, resolve))
    this.#post({ type: 'decode', id, file })
    try {
      const { result } = await unlessAborted(decoded, signal)
      if ('data' in result) return result
      throw InoriginError.fromRecord(result)
    } finally {
      this.#waiting.delete(id)
    }
  }

  receive(message: DecodedMessage): void {
    this.#waiting.get(message.id)?.(message)
  }
}
