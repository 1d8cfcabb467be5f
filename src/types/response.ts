/** An item of a conversation in JSON, as clients send and receive it. */
export interface StoredItem {
  readonly id: string
  readonly [field: string]: unknown
}

/** A stored response that clients can refer to in later requests. */
export interface StoredResponse {
  /** Id of the response. It cannot be guessed. */
  id: string
  /** The response body as it was sent to the client. */
  body: Readonly<Record<string, unknown>>
  /** The whole conversation before the response, without its instructions. */
  input: readonly StoredItem[]
  /** The items of the response. A client can refer to each of them by its id. */
  output: readonly StoredItem[]
}
