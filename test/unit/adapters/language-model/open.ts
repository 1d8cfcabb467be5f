/** A `LanguageModel` of a test server, whose answers a test scripts. */
import { vi } from 'vitest'
import type { ScriptedAnswer } from '../../../../src/adapters/testing/answers.ts'
import { createTestServer } from '../../../../src/adapters/testing/server.ts'
import { defineLanguageModel } from '../../../../src/adapters/language-model/index.ts'
import type { LanguageModelOptions } from '../../../../src/adapters/language-model/index.ts'
import type { GenerationRequest } from '../../../../src/types/index.ts'

export const TAG = '@me/chat'

/** Node.js has no `ProgressEvent`. */
class ProgressEvent extends Event {
  readonly loaded: number
  readonly total: number
  readonly lengthComputable: boolean

  constructor(
    type: string,
    { loaded = 0, total = 0, lengthComputable = false }: ProgressEventInit,
  ) {
    super(type)
    this.loaded = loaded
    this.total = total
    this.lengthComputable = lengthComputable
  }
}

interface OpenOptions extends Partial<LanguageModelOptions> {
  answers?: (request: GenerationRequest) => ScriptedAnswer | Promise<ScriptedAnswer>
  maxInputTokens?: number
  load?: (signal: AbortSignal) => Promise<void> | void
}

/** Returns the interface, and the server that answers. A token is a word. */
export function open({ answers, maxInputTokens, load, ...options }: OpenOptions = {}) {
  vi.stubGlobal('ProgressEvent', ProgressEvent)
  const server = createTestServer({
    models: [
      {
        tag: TAG,
        answers: answers ?? (({ messages }) => `Heard: ${messages.at(-1)?.content}`),
        ...(maxInputTokens !== undefined && { maxInputTokens }),
        ...(load && { load }),
      },
    ],
  })
  return { server, LanguageModel: defineLanguageModel({ server, model: TAG, ...options }) }
}

/** Resolves with what the promise rejects with. */
export const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )

/** Resolves with all parts of a stream. */
export async function readAll<T>(stream: ReadableStream<T>): Promise<T[]> {
  const parts: T[] = []
  const reader = stream.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return parts
    parts.push(value)
  }
}

/** Returns a promise, and the function that resolves it. */
export function createGate(): { opened: Promise<void>; open: () => void } {
  let resolveGate = () => {}
  const opened = new Promise<void>((resolve) => (resolveGate = resolve))
  return { opened, open: () => resolveGate() }
}
