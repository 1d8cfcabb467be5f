/** An item of a conversation as clients send it and get it, in JSON. */
export interface KeptItem {
  readonly id: string
  readonly [field: string]: unknown
}

/** A response that clients can refer to in later requests. */
export interface KeptResponse {
  /** Of the response; no one can guess it. */
  id: string
  /** As it was answered. */
  body: Readonly<Record<string, unknown>>
  /** The whole conversation before it, but for its instructions. */
  input: readonly KeptItem[]
  /** What was answered; each can be referred to by itself. */
  output: readonly KeptItem[]
}
