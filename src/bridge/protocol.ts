/**
 * The protocol between `inorigin bridge` and a tab, over one WebSocket. Text frames are messages,
 * and binary frames are pieces of bodies: the request's id in 4 bytes, then the bytes.
 *
 * The tab sends `hello`, the server `welcome`. Then the server sends requests, each followed by the
 * pieces of its body. The tab answers each with `response`, pieces and `end`, or with `fail`.
 */
import * as v from 'valibot'

/** Subprotocol of the WebSocket. Its number changes with every incompatible change. */
export const SUBPROTOCOL = 'inorigin.bridge.1'
/** Start of the second subprotocol, which carries the token: browsers can send no header. */
export const TOKEN_PREFIX = 'token.'
export const SOCKET_PATH = '/bridge'

/**
 * Bytes of a response body that the tab may send before the client has read any: thousands of tokens,
 * which the model may be ahead of the client. On two busy cores, a tab sent 18 MiB/s with a window of
 * 64 KiB, 27 with 256 KiB and 33 with 1 MiB (`npm run bench -- --only bridge`). No model is as fast.
 */
export const WINDOW_BYTES = 2 ** 18
export const MAX_PIECE_BYTES = 2 ** 16
/** Maximum length in bytes of a request body: 32 MiB, which is the limit of `/v1`. */
export const MAX_BODY_BYTES = 32 * 2 ** 20
/** Maximum length in bytes of a frame. Headers have at most 16 KiB in Node. */
export const MAX_FRAME_BYTES = 2 ** 17

/** Codes of a WebSocket that is closed for a reason of this protocol. */
export const CLOSE_CODES = {
  invalidMessage: 4400,
  wrongToken: 4401,
  wrongVersion: 4406,
  timeout: 4408,
  tooManyTabs: 4429,
} as const

const idSchema = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(2 ** 32 - 1))
const bytesSchema = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(MAX_BODY_BYTES))
const headersSchema = v.array(v.tuple([v.string(), v.string()]))
const countSchema = v.pipe(v.number(), v.minValue(0))

const capabilitySchema = v.object({
  /** Kind of the tab's WebGPU adapter. */
  gpu: v.picklist(['hardware', 'software', 'none']),
  /** Largest buffer of the GPU in bytes, 0 without a GPU. */
  gpuBufferBytes: countSchema,
  /** Bytes of memory, which browsers round down; 0 if the browser does not tell. */
  memoryBytes: countSchema,
  /** Number of logical processors that WASM uses: 1 if the page is not isolated. */
  threads: countSchema,
})

const serverMessageSchema = v.variant('type', [
  v.object({ type: v.literal('welcome') }),
  v.object({
    type: v.literal('request'),
    id: idSchema,
    method: v.string(),
    path: v.pipe(v.string(), v.startsWith('/v1')),
    headers: headersSchema,
    /** Length of the body, which follows in binary frames. */
    bodyBytes: bytesSchema,
  }),
  /** Permission to send as many more bytes of a response body. */
  v.object({ type: v.literal('credit'), id: idSchema, bytes: bytesSchema }),
  v.object({ type: v.literal('cancel'), id: idSchema }),
  /** Question whether the page's main thread lives. */
  v.object({ type: v.literal('ping') }),
])

const tabMessageSchema = v.variant('type', [
  v.object({ type: v.literal('hello'), capability: capabilitySchema }),
  v.object({
    type: v.literal('response'),
    id: idSchema,
    status: v.pipe(v.number(), v.integer(), v.minValue(200), v.maxValue(599)),
    headers: headersSchema,
  }),
  v.object({ type: v.literal('end'), id: idSchema }),
  v.object({ type: v.literal('fail'), id: idSchema, message: v.string() }),
  v.object({ type: v.literal('pong') }),
])

export type TabCapability = v.InferOutput<typeof capabilitySchema>
export type ServerMessage = v.InferOutput<typeof serverMessageSchema>
export type TabMessage = v.InferOutput<typeof tabMessageSchema>
export type RequestMessage = Extract<ServerMessage, { type: 'request' }>

export interface Piece {
  id: number
  bytes: Uint8Array
}

/** Return the message or piece in a frame of the server or a tab; `undefined` for an invalid one. */
export const parseServerFrame = (data: string | ArrayBuffer) =>
  parseFrame<ServerMessage>(serverMessageSchema, data)
export const parseTabFrame = (data: string | ArrayBuffer) =>
  parseFrame<TabMessage>(tabMessageSchema, data)

function parseFrame<T>(schema: v.GenericSchema<T>, data: string | ArrayBuffer) {
  if (typeof data !== 'string') return decodePiece(data)
  try {
    const { success, output } = v.safeParse(schema, JSON.parse(data))
    return success ? output : undefined
  } catch {
    return undefined
  }
}

const ID_BYTES = 4

export function encodePiece(id: number, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(ID_BYTES + bytes.byteLength)
  new DataView(frame.buffer).setUint32(0, id)
  frame.set(bytes, ID_BYTES)
  return frame
}

function decodePiece(data: ArrayBuffer): Piece | undefined {
  if (data.byteLength <= ID_BYTES) return undefined
  return { id: new DataView(data).getUint32(0), bytes: new Uint8Array(data, ID_BYTES) }
}

export function* splitIntoPieces(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += MAX_PIECE_BYTES)
    yield bytes.subarray(at, at + MAX_PIECE_BYTES)
}
