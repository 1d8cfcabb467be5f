/** A `LanguageModel` of a test server, whose answers a test scripts. */
import { vi } from 'vitest'
import type { ScriptedAnswer } from '../../../../src/extras/testing/answers.ts'
import { createTestServer } from '../../../../src/extras/testing/server.ts'
import {
  defineLanguageModel,
  type LanguageModelCreateOptions,
  type LanguageModelOptions,
} from '../../../../src/extras/language-model/index.ts'
import type { GenerationRequest } from '../../../../src/types/index.ts'

export const TAG = '@me/chat'

/** Node.js has no `ProgressEvent`. */
class ProgressEvent extends Event {
  constructor(type: string, init: ProgressEventInit) {
    super(type)
    Object.assign(this, { loaded: 0, total: 0, lengthComputable: false, ...init })
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
  const limits = { ...(maxInputTokens !== undefined && { maxInputTokens }), ...(load && { load }) }
  const hear = ({ messages }: GenerationRequest) => `Heard: ${messages.at(-1)?.content}`
  const server = createTestServer({ models: [{ tag: TAG, answers: answers ?? hear, ...limits }] })
  return { server, LanguageModel: defineLanguageModel({ server, model: TAG, ...options }) }
}

/** Opens the interface and creates a session. */
export async function openSession(
  options: OpenOptions = {},
  created: LanguageModelCreateOptions = {},
) {
  const opened = open(options)
  return { ...opened, session: await opened.LanguageModel.create(created) }
}

/** Resolves with all parts of a stream. */
export async function readAll<T>(stream: ReadableStream<T>): Promise<T[]> {
  const parts: T[] = []
  for await (const part of stream) parts.push(part)
  return parts
}
