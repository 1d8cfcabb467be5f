/** Expands a short entry of a hub model into a full one by filling in defaults. */
import type { HubEntry, HubSource, ModelEntry } from '../schema.ts'

/** URL of the public hub. */
export const PUBLIC_HUB_URL = 'https://huggingface.co/'

/** Context length in tokens to assume until the model's own is known. Every chat model has it. */
const DEFAULT_CONTEXT_TOKENS = 4_096

/** Creation time of a model whose own is unknown. */
export const UNKNOWN_CREATION_TIME = '1970-01-01T00:00:00Z'

/** Returns a full entry. `host` is an absolute URL, or `undefined` for the public hub. */
export function expandHubEntry(entry: HubEntry, host: string | undefined): ModelEntry {
  const { huggingface, revision = 'main', dtypes = null, host: _, ...described } = entry
  const hub: HubSource = {
    repository: huggingface,
    revision,
    host: host ?? PUBLIC_HUB_URL,
    dtypes,
    maxInputTokens: entry.maxInputTokens ?? null,
    maxOutputTokens: entry.maxOutputTokens ?? null,
    created: entry.created ?? null,
    ...(entry.capabilities?.imageInput && { imageInput: true }),
  }
  return {
    ...described,
    type: 'model',
    name: entry.name ?? huggingface.slice(huggingface.indexOf('/') + 1),
    created: entry.created ?? UNKNOWN_CREATION_TIME,
    ...toTokenLimits(hub, undefined),
    implementations: entry.implementations ?? [],
    hub,
  }
}

/**
 * Returns the token limits of a model: prompt and output together, and output alone. `context` is
 * the model's context length, if known. A catalog may set a lower limit, but not a higher one.
 */
export function toTokenLimits(
  hub: Pick<HubSource, 'maxInputTokens' | 'maxOutputTokens'>,
  context: number | undefined,
): Pick<ModelEntry, 'maxInputTokens' | 'maxOutputTokens'> {
  const promised = hub.maxInputTokens ?? context ?? DEFAULT_CONTEXT_TOKENS
  const maxInputTokens = Math.min(promised, context ?? promised)
  return {
    maxInputTokens,
    maxOutputTokens: Math.min(maxInputTokens, hub.maxOutputTokens ?? DEFAULT_CONTEXT_TOKENS),
  }
}
