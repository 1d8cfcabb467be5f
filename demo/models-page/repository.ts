/** Asks the hub about a repository before it becomes a model: its files, its license, and what it lacks. */
import { bytes } from '../format.ts'

/** Address of the hub. */
const HUB = 'https://huggingface.co/'

/** Time in milliseconds after which a hub that sends nothing is given up. */
const TIMEOUT_MS = 30_000

/** Maximum number of characters of an answer of the hub. No list of files is longer. */
const MAX_CHARACTERS = 16 * 2 ** 20

/** Why a repository cannot become a model here, and what to do, in one or two sentences. */
export class RepositoryProblem extends Error {
  /** `true` if the same may work later. */
  readonly canRetry: boolean

  constructor(message: string, canRetry = false) {
    super(message)
    this.canRetry = canRetry
  }
}

export interface RepositoryFile {
  path: string
  bytes: number
}

/** Repository of the hub that has files for browsers. */
export interface Repository {
  /** Name as its owner spells it. */
  name: string
  license: string | undefined
  /** GGUF file to load, if it has no ONNX graphs. */
  gguf: RepositoryFile | undefined
  /** Number of its GGUF files, or of its ONNX graphs. */
  count: number
}

/**
 * Resolves with the repository. `file` names the GGUF file that is wanted. Rejects with a
 * `RepositoryProblem`.
 */
export async function findRepository(
  name: string,
  { file, revision = 'main', signal, hub = HUB }: FindOptions,
): Promise<Repository> {
  const path = `api/models/${name}/revision/${encodeURIComponent(revision)}?blobs=true`
  const listing = toListing(await askHub(new URL(path, hub), name, signal))
  if (!listing) throw new RepositoryProblem(strange(new URL(hub).host), true)
  const { id = name, gated, cardData, siblings } = listing
  if (gated !== undefined && gated !== false) throw new RepositoryProblem(gatedWords(id))
  const files = siblings.map(({ rfilename, size = 0 }) => ({ path: rfilename, bytes: size }))
  const license = cardData?.license === 'other' ? cardData.license_name : cardData?.license
  return { name: id, license, ...chooseFiles(id, files, file) }
}

interface FindOptions {
  signal: AbortSignal
  /** Path of the wanted GGUF file. */
  file?: string | undefined
  revision?: string | undefined
  /** Address of the hub, for a mirror. */
  hub?: string
}

/** Part of the hub's description of a model that is read here. */
interface Listing {
  id?: string
  gated?: boolean | 'auto' | 'manual'
  cardData?: { license?: string; license_name?: string }
  siblings: { rfilename: string; size?: number }[]
}

async function askHub(url: URL, name: string, signal: AbortSignal): Promise<string> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)])
  try {
    const response = await fetch(url, { signal: limited })
    if (!response.ok) throw refusal(name, url.host, response)
    return await readText(response, url.host)
  } catch (error) {
    if (error instanceof RepositoryProblem || signal.aborted) throw error
    const what = `${url.host} cannot be reached now, so ${name} was not added.`
    throw new RepositoryProblem(`${what} Try again later, or drop the model's files here.`, true)
  }
}

async function readText({ body }: Response, host: string): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  const reader = body?.getReader()
  for (let part = await reader?.read(); part?.value; part = await reader?.read()) {
    text += decoder.decode(part.value, { stream: true })
    if (text.length <= MAX_CHARACTERS) continue
    await reader?.cancel()
    throw new RepositoryProblem(strange(host), true)
  }
  return text
}

function refusal(name: string, host: string, { status, headers }: Response): RepositoryProblem {
  const code = headers.get('x-error-code')
  if (code === 'GatedRepo' || status === 403) return new RepositoryProblem(gatedWords(name))
  if (code === 'RevisionNotFound') {
    return new RepositoryProblem(`${name} has no such revision on ${host}. Check the address.`)
  }
  if (status === 404 || code === 'RepoNotFound') {
    const what = `${host} has no public model ${name}.`
    return new RepositoryProblem(`${what} Check the spelling; this page sees no private models.`)
  }
  // The hub answers so for private repositories and for missing ones, if nobody has signed in.
  if (status === 401) {
    const what = `${host} shows ${name} to nobody without an account: it is gated, private or not there.`
    return new RepositoryProblem(
      `${what} Check the spelling, or download its files and drop them here.`,
    )
  }
  return new RepositoryProblem(`${host} answered with ${status}. Try again later.`, true)
}

const gatedWords = (name: string): string =>
  `${name} is gated: its files are only for accounts that accepted its terms, and this page has none. ` +
  'Accept them on the hub, download the files, and drop their folder here.'

const strange = (host: string): string =>
  `${host} sent no list of files, so something else may answer in its place. Try again later.`

function toListing(text: string): Listing | undefined {
  try {
    const listing = JSON.parse(text) as Partial<Listing> | null
    const files: unknown = listing?.siblings
    const isList =
      Array.isArray(files) && files.every((file) => typeof file?.rfilename === 'string')
    return isList ? (listing as Listing) : undefined
  } catch {
    return undefined
  }
}

/** Weights of GGUF files, those first that are small and answer nearly as the original does. */
const PREFERRED_TYPES = ['q4_k_m', 'q4_1', 'q4_0', 'q4_k_s', 'q5_k_m', 'q8_0'] as const

/** Formats that browsers do not load, by the ends of their files. */
const OTHER_FORMATS = [
  ['safetensors', /\.safetensors$/],
  ['PyTorch', /\.(bin|pt|pth)$/],
  ['TensorFlow', /\.(h5|pb|tflite)$/],
  ['Flax', /\.msgpack$/],
  ['OpenVINO', /_model\.xml$/],
  ['MLX', /\.npz$/],
] as const

function chooseFiles(
  name: string,
  files: readonly RepositoryFile[],
  wanted: string | undefined,
): Pick<Repository, 'gguf' | 'count'> {
  const graphs = files.filter(({ path }) => path.endsWith('.onnx'))
  const ggufs = files.filter(({ path }) => isFirstPart(path))
  if (wanted !== undefined) {
    const gguf = ggufs.find(({ path }) => path.toLowerCase() === wanted.toLowerCase())
    if (gguf) return { gguf, count: ggufs.length }
    const others = ggufs.slice(0, 3).map(({ path }) => path)
    const list = others.length > 0 ? ` It has ${others.join(', ')}.` : ''
    throw new RepositoryProblem(`${name} has no file ${wanted}.${list} Check the name.`)
  }
  if (graphs.length > 0) return { gguf: undefined, count: graphs.length }
  const gguf = chooseGguf(ggufs)
  if (gguf) return { gguf, count: ggufs.length }
  throw new RepositoryProblem(unfitWords(name, files))
}

/** Returns `true` for a GGUF file of a language model, and for the first part of a split one. */
const isFirstPart = (path: string): boolean =>
  /\.gguf$/i.test(path) &&
  !/(^|\/)(mmproj|imatrix)/i.test(path) &&
  !/-(?!00001)\d{5}-of-\d{5}\.gguf$/i.test(path)

function chooseGguf(files: readonly RepositoryFile[]): RepositoryFile | undefined {
  const preferred = PREFERRED_TYPES.map((type) =>
    files.find(({ path }) => path.toLowerCase().includes(type)),
  )
  return preferred.find(Boolean) ?? files.toSorted((one, other) => one.bytes - other.bytes)[0]
}

function unfitWords(name: string, files: readonly RepositoryFile[]): string {
  const format = OTHER_FORMATS.find(([, end]) => files.some(({ path }) => end.test(path)))
  const title = name.slice(name.indexOf('/') + 1)
  const todo = `Search the hub for "${title} ONNX" or "${title} GGUF", and add what you find.`
  if (!format) return `${name} has neither ONNX graphs nor GGUF files. ${todo}`
  const size = files
    .filter(({ path }) => format[1].test(path))
    .reduce((sum, file) => sum + file.bytes, 0)
  return `${name} has only ${format[0]} files (${bytes(size)}), which browsers cannot load. ${todo}`
}
