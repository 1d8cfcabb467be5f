/** What the checks know of a client: how it asks, and in what words it answers. */
import type { Feature } from './features.ts'

/** What a client is made with. */
export interface Settings {
  /** For clients whose base URL has no `/v1`. */
  origin: string
  /** For clients whose base URL has. */
  baseURL: string
  apiKey: string
  model: string
  /** A model of vectors. */
  embedder: string
  /** A model that sees images. */
  seer: Seer
  /** Sends the requests. Default: that of the page. Not all clients take another. */
  fetch?: typeof fetch
}

/** A model that sees images, and what it is shown. */
export interface Seer {
  model: string
  question: string
  /** PNG files in base64, each with the color that the answer names. */
  images: ReadonlyArray<{ data: string; color: string }>
  /** Tokens of each of them in a prompt. */
  tokens: number
}

export interface UserTurn {
  role: 'user'
  text: string
  /** PNG in base64, behind the text. */
  image?: string
}

export interface Call {
  id: string
  name: string
  input: unknown
}

/** `Own` is what the client itself wants to be given back: a message, or several. */
export type Turn<Own> =
  | UserTurn
  | { role: 'assistant'; own: Own }
  | { role: 'results'; results: ReadonlyArray<{ call: Call; text: string }> }

export interface Options {
  system?: string
  /** The most tokens. */
  limit?: number
  stop?: string
  /** Which of the two tools to call; `weather` is one of them. Absent: there are none. */
  tools?: 'auto' | 'none' | 'required' | 'weather'
  /** At most one call. */
  single?: boolean
  json?: 'object' | 'schema'
  /** As little as the client can ask for. */
  think?: boolean
  topP?: number
  signal?: AbortSignal
}

/** Why an answer ended. */
export type End = 'stop' | 'limit' | 'stop text' | 'calls'

export interface Answer<Own> {
  text: string
  thought: string
  calls: Call[]
  end: End
  /** `thought`: tokens of it, where the client tells. */
  usage: { input: number; output: number; thought?: number }
  own: Own
}

/** Errors that users of the client tell apart. */
export type Failure = 'invalid' | 'unauthorised' | 'unknown' | 'tooLarge' | 'overflow'

/** What is said of an error. */
export interface Complaint {
  status: number | undefined
  message: string
}

export interface Client<Own> {
  ask(turns: ReadonlyArray<Turn<Own>>, options?: Options): Promise<Answer<Own>>
  /** The same as a stream; `tell` gets each piece of text. */
  stream(
    turns: ReadonlyArray<Turn<Own>>,
    options: Options,
    tell: (piece: string) => void,
  ): Promise<Answer<Own>>
  /** Whether an error is the one that the client has for it. */
  is(failure: Failure, thrown: unknown): boolean
  complaint(thrown: unknown): Complaint
  /** What only this client has: a check of its own. */
  own?: Partial<Record<Feature, () => Promise<void>>>
  /** What has to be refused by name. */
  refused?: Partial<Record<Feature, () => Promise<unknown>>>
  /** What it does not tell. */
  silent?: 'thoughts'
}

/** How a column of the page comes about. */
export interface Kind<Own = unknown> {
  /** Of the column. */
  title: string
  /** Whose versions are told. */
  packages: readonly string[]
  /** What the client has no way to ask for, or does not send. */
  lacks: readonly Feature[]
  /** How it makes a call certain. Default: `required`. */
  force?: 'weather'
  /** Tokens of the least it can be asked to think. Default: those of the effort `minimal`. */
  thoughts?: number
  /** What users have to know. */
  note?: string
  create(settings: Settings): Client<Own>
}
