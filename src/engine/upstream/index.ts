/** Answers requests on another server, which speaks chat completions and embeddings. */
import { createParser } from 'eventsource-parser'
import { InoriginError } from '../../error.ts'
import type {
  AcceptedEvent,
  EmbeddingRequest,
  Embeddings,
  GenerationEvent,
  GenerationRequest,
} from '../../types/index.ts'
import { isObject } from '../../values/objects.ts'
import { ChunkReader } from './chat-events.ts'
import { toChatCompletion, type UpstreamModel } from './chat-request.ts'
import {
  invalidResponseError,
  postUpstream,
  type UpstreamCall,
  type UpstreamResponse,
  upstreamStreamError,
} from './connection.ts'

/** Maximum number of UTF-16 units of one event of a stream. */
const MAX_EVENT_CHARACTERS = 4 * 1024 * 1024
/** Maximum number of bytes of one stream. */
const MAX_STREAM_BYTES = 256 * 1024 * 1024
/** Maximum number of bytes of a response with vectors, for each number and for the rest. */
const MAX_NUMBER_BYTES = 32
const MAX_EMBEDDING_REST_BYTES = 1024 * 1024

/**
 * Generates on the upstream server, which accepts the request when its answer begins. Throws the
 * server's error, and `invalid_request` for fields that it does not honor. An abort closes the
 * connection.
 */
export async function* generateUpstream(
  request: GenerationRequest,
  model: UpstreamModel,
  call: UpstreamCall,
): AsyncGenerator<AcceptedEvent | GenerationEvent> {
  const { upstream } = call
  const { body, ignored } = toChatCompletion(request, upstream, model)
  const response = await postUpstream('chat/completions', body, call)
  try {
    const chunks = readChunks(response, upstream.url)
    const reader = new ChunkReader(upstream.url, request)
    let { done, value } = await chunks.next()
    let events = done ? [] : reader.read(value)
    yield { type: 'accepted', ignored, servedBy: 'upstream' }
    const continues = request.interrupted !== undefined
    yield { type: 'served_by', servedBy: 'upstream', ...(continues && { continues }) }
    while (!done) {
      yield* events
      ;({ done, value } = await chunks.next())
      if (!done) events = reader.read(value)
    }
    yield reader.finish()
  } catch (error) {
    throw withoutSecrets(error, response)
  } finally {
    response.close()
  }
}

/** Yields the JSON values of an event stream up to its end marker, which must not be missing. */
async function* readChunks(response: UpstreamResponse, url: string): AsyncGenerator<unknown> {
  if (!response.contentType.startsWith('text/event-stream')) {
    response.close()
    throw invalidResponseError(url, `its type is "${response.contentType}", not text/event-stream`)
  }
  const arrived: string[] = []
  const parser = createParser({
    onEvent({ data }) {
      response.heard()
      arrived.push(data)
    },
    // Servers send comments while a request waits in their queue.
    onComment: () => response.heard(),
    onError(error) {
      if (error.type === 'max-buffer-size-exceeded') throw error
    },
    maxBufferSize: MAX_EVENT_CHARACTERS,
  })
  const decoder = new TextDecoder()
  for await (const bytes of readLimited(response, url, MAX_STREAM_BYTES)) {
    feed(decoder.decode(bytes, { stream: true }))
    for (const data of arrived.splice(0)) {
      if (data === '[DONE]') return
      yield parseChunk(data)
    }
  }
  throw invalidResponseError(url, 'its stream ended without [DONE]')

  function feed(text: string): void {
    try {
      parser.feed(text)
    } catch (cause) {
      throw invalidResponseError(url, 'an event is too long', cause)
    }
  }

  function parseChunk(data: string): unknown {
    try {
      return JSON.parse(data)
    } catch (cause) {
      throw invalidResponseError(url, 'an event is not JSON', cause)
    }
  }
}

/** Returns the error of a stream without the headers that the server may quote in it. */
function withoutSecrets(error: unknown, response: UpstreamResponse): unknown {
  if (!(error instanceof InoriginError)) return error
  const message = response.redact(error.message)
  return message === error.message
    ? error
    : new InoriginError(error.kind, message, error.toRecord())
}

async function* readLimited(
  response: UpstreamResponse,
  url: string,
  maxBytes: number,
): AsyncGenerator<Uint8Array> {
  let total = 0
  for await (const bytes of response.readBytes()) {
    total += bytes.length
    if (total > maxBytes) throw invalidResponseError(url, 'it is too long')
    yield bytes
  }
}

/** Embeds texts on the upstream server. Resolves with one vector for each text. */
export async function embedUpstream(
  { input, dimensions, promptName, truncate }: EmbeddingRequest,
  expectedDimensions: number,
  call: UpstreamCall,
): Promise<Embeddings> {
  const { upstream } = call
  const { url, model } = upstream
  const body = {
    model,
    input,
    encoding_format: 'float',
    ...(dimensions && { dimensions }),
    ...(promptName !== undefined && { prompt_name: promptName }),
    ...(truncate !== undefined && { truncate }),
  }
  const response = await postUpstream('embeddings', body, call)
  const length = dimensions ?? expectedDimensions
  const maxBytes = MAX_EMBEDDING_REST_BYTES + input.length * length * MAX_NUMBER_BYTES
  const pieces: Uint8Array<ArrayBuffer>[] = []
  for await (const bytes of readLimited(response, url, maxBytes)) pieces.push(new Uint8Array(bytes))
  const invalid = (what: string, cause?: unknown) => invalidResponseError(url, what, cause)
  let parsed: unknown
  try {
    parsed = JSON.parse(await new Blob(pieces).text())
  } catch (cause) {
    throw invalid('it is not JSON', cause)
  }
  const { data, usage, error } = isObject(parsed) ? parsed : {}
  // A server whose status was sent before the failure, as inorigin itself, reports it in the body.
  if (isObject(error)) throw withoutSecrets(upstreamStreamError(url, error), response)
  if (!Array.isArray(data) || data.length !== input.length)
    throw invalid(`it has not ${input.length} vectors`)
  const vectors = new Float32Array(length * input.length)
  data.forEach((item, position) => {
    const { embedding, index = position } = isObject(item) ? item : {}
    const isVector = Array.isArray(embedding) && embedding.every((one) => Number.isFinite(one))
    if (!isVector || embedding.length !== length || typeof index !== 'number' || !(index in data))
      throw invalid(`vector ${position} is not ${length} numbers`)
    vectors.set(embedding as number[], index * length)
  })
  const tokens = isObject(usage) ? Number(usage['prompt_tokens'] ?? 0) : 0
  return { vectors, dimensions: length, tokens }
}
