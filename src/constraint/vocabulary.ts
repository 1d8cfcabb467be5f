/** Builds the instance for a vocabulary, in a worker if there is one: it takes a second for 150,000 tokens. */
import { ConstraintError } from './constraint.ts'
import { Instance } from './instance.ts'

/** The vocabulary of a model as the module takes it. */
interface Vocabulary {
  /** For each token its length in 16 bits, little-endian, and its bytes. */
  tokens: Uint8Array<ArrayBuffer>
  endTokens: Uint32Array<ArrayBuffer>
}

/** Message to the worker: first the vocabulary, then a request for each piece of memory. */
export type VocabularyRequest =
  | { type: 'build'; module: WebAssembly.Module; vocabulary: Vocabulary }
  | { type: 'read'; start: number; end: number }

/** Message of the worker. */
export type VocabularyResponse =
  | { type: 'started' }
  | { type: 'built'; memoryBytes: number }
  | { type: 'memory'; bytes: Uint8Array<ArrayBuffer>; start: number }
  | { type: 'failed'; reason: string }

/** Largest number of bytes of a token. The library refuses longer ones, and no text needs them. */
const MAX_TOKEN_BYTES = 1000

/** Bytes that are copied at once. That takes 1 to 10 ms of a slow core, because the memory is new. */
const PIECE_BYTES = 2 * 2 ** 20

/** Milliseconds in which the worker must start, of which it takes 50. Chromium 156 sometimes never loads its script. */
const START_TIMEOUT_MS = 5_000

/** Packs a vocabulary. Tokens of more than 1,000 bytes have no text. */
export function packVocabulary(
  bytes: readonly (Uint8Array | null)[],
  endTokens: readonly number[],
): Vocabulary {
  const texts = bytes.map((each) => (each && each.length <= MAX_TOKEN_BYTES ? each : null))
  const tokens = new Uint8Array(texts.reduce((sum, each) => sum + 2 + (each?.length ?? 0), 0))
  let next = 0
  for (const text of texts) {
    const length = text?.length ?? 0
    tokens[next] = length & 0xff
    tokens[next + 1] = length >>> 8
    if (text) tokens.set(text, next + 2)
    next += 2 + length
  }
  return { tokens, endTokens: Uint32Array.from(endTokens.filter((id) => id < bytes.length)) }
}

/** Builds an instance in this thread, which is blocked meanwhile. */
export async function buildHere(
  module: WebAssembly.Module,
  { tokens, endTokens }: Vocabulary,
): Promise<Instance> {
  const instance = await Instance.open(module)
  instance.setVocabulary(tokens, endTokens)
  return instance
}

/** Builds an instance in a worker and copies it, piece by piece. Resolves with `null` if there is no such worker. */
export async function buildInWorker(
  module: WebAssembly.Module,
  vocabulary: Vocabulary,
  createWorker: () => Worker,
  signal: AbortSignal,
): Promise<Instance | null> {
  let worker: Worker
  try {
    worker = createWorker()
  } catch {
    return null
  }
  const ask = (request: VocabularyRequest): Promise<VocabularyResponse | null> => {
    const response = receive(worker, signal)
    worker.postMessage(request)
    return response
  }
  try {
    if (!(await receive(worker, signal, START_TIMEOUT_MS))) return null
    const built = await ask({ type: 'build', module, vocabulary })
    if (!built) return null
    if (built.type !== 'built') throw failed(built)
    const { memoryBytes } = built
    const instance = await Instance.open(module)
    for (let start = 0; start < memoryBytes; start += PIECE_BYTES) {
      const end = Math.min(start + PIECE_BYTES, memoryBytes)
      const piece = await ask({ type: 'read', start, end })
      if (piece?.type !== 'memory') throw failed(piece)
      instance.writeMemory(piece.bytes, start, memoryBytes)
    }
    return instance
  } finally {
    worker.terminate()
  }
}

/** Resolves with the next message of the worker; `null` if it fails, or says nothing in time. */
function receive(
  worker: Worker,
  signal: AbortSignal,
  timeoutMs?: number,
): Promise<VocabularyResponse | null> {
  const settled = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  return new Promise<VocabularyResponse | null>((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { signal: settled.signal })
    if (timeoutMs !== undefined) timer = setTimeout(() => resolve(null), timeoutMs)
    worker.onmessage = ({ data }: MessageEvent<VocabularyResponse>) => resolve(data)
    worker.onerror = (event) => {
      event.preventDefault()
      resolve(null)
    }
    worker.onmessageerror = () => resolve(null)
  }).finally(() => {
    clearTimeout(timer)
    settled.abort()
  })
}

function failed(response: VocabularyResponse | null): ConstraintError {
  const reason = response?.type === 'failed' ? response.reason : 'Its worker ended.'
  return new ConstraintError('constraint_trap', `The vocabulary could not be built: ${reason}`)
}
