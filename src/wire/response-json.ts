/** Creates the response object, which clients receive complete or partial. */
import type { ErrorRecord } from '../error.ts'
import type { StoredItem, Usage } from '../types/index.ts'
import { id, nowInSeconds } from './id.ts'
import type { CreateId, Status } from './responses-items.ts'
import type { ResponsesBody } from './responses.ts'

/** Prefix of the ids of responses. */
export const RESPONSE_PREFIX = 'resp_'

/** Options that decide what a response contains. */
export interface ResponseEncoderOptions {
  /** Body of the request. The response repeats some of its fields. */
  requestBody: ResponsesBody
  reasoning: boolean
  logprobs: boolean
  /** `true` if the client asked for `reasoning.encrypted_content`, to send reasoning back. */
  encryptReasoning: boolean
  /** Stores the response; resolves with `false` if it cannot. Absent: it is not stored. */
  store?(body: ResponseJson): Promise<boolean>
  /** Absent if the response is not computed in the background. */
  background?: BackgroundHead
}

/** Fields of a background response that stay, because its events are encoded anew for each reader. */
export interface BackgroundHead {
  id: string
  /** Time of creation in seconds since 1970. */
  createdAt: number
  /** Sequence number of the last event that the reader has; -1 if it has none. */
  after: number
}

/** Response as it is sent, complete or partial. */
export interface ResponseJson extends Readonly<Record<string, unknown>> {
  id: string
  status: ResponseStatus
  output: readonly StoredItem[]
}

export type ResponseStatus = Status | 'queued' | 'failed' | 'cancelled'

/** Returns a function that creates the response object with all fields that clients expect. */
export function createResponseJson({ requestBody, background }: ResponseEncoderOptions) {
  const head = {
    id: background?.id ?? id(RESPONSE_PREFIX),
    object: 'response',
    created_at: background?.createdAt ?? nowInSeconds(),
  }
  const { reasoning, text, tools, ...fields } = requestBody
  const repeatedFields = {
    background: fields.background ?? false,
    error: null,
    instructions: fields.instructions ?? null,
    max_output_tokens: fields.max_output_tokens ?? null,
    metadata: fields.metadata ?? {},
    model: fields.model,
    parallel_tool_calls: fields.parallel_tool_calls ?? true,
    previous_response_id: fields.previous_response_id ?? null,
    reasoning: { effort: reasoning?.effort ?? null, summary: reasoning?.summary ?? null },
    store: fields.store ?? true,
    temperature: fields.temperature ?? null,
    text: { format: text?.format ?? { type: 'text' } },
    tool_choice: fields.tool_choice ?? 'auto',
    tools: (tools ?? []).map((tool) =>
      tool.type === 'custom'
        ? { format: { type: 'text' }, ...tool }
        : { strict: false, parameters: {}, ...tool },
    ),
    top_p: fields.top_p ?? null,
    truncation: 'disabled',
  }
  return (
    status: ResponseStatus,
    output: readonly StoredItem[],
    usage: Usage | null,
    failure?: ErrorRecord,
  ): ResponseJson => ({
    ...head,
    status,
    ...repeatedFields,
    ...(failure && { error: { code: 'server_error', message: failure.message } }),
    // A response that was aborted has no usage, and no reason that clients know.
    incomplete_details: status === 'incomplete' && usage ? { reason: 'max_output_tokens' } : null,
    output,
    usage: usage && toUsageJson(usage),
  })
}

function toUsageJson({ promptTokens, cachedTokens, completionTokens, reasoningTokens }: Usage) {
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: promptTokens + completionTokens,
  }
}

/** Creates the ids of the items of a background response, the same ones each time. */
export function createItemIds(responseId: string): CreateId {
  let items = 0
  return (prefix) => `${prefix}${responseId.replace(RESPONSE_PREFIX, '')}${items++}`
}

/** Returns the id of the background response that an item would belong to, by its id. */
export function findResponseId(itemId: string): string | null {
  const unprefixed = /^[a-z]+_([0-9a-f]{24})\d+$/.exec(itemId)?.[1]
  return unprefixed === undefined ? null : RESPONSE_PREFIX + unprefixed
}
