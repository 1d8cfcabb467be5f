/** A short entry with its defaults: what a catalog need not say of a model on a hub. */
import type { HubEntry, HubSource, ModelEntry } from '../schema.ts'

/** The public hub. */
export const HOST = 'https://huggingface.co/'

/** Tokens of context that every chat model in use has, until the model's own number is known. */
const CONTEXT = 4_096

/** When nobody says when it was made. */
const EPOCH = '1970-01-01T00:00:00Z'

/** As a full entry. `host` is absolute, or `undefined` for the public hub. */
export function expandHubEntry(entry: HubEntry, host: string | undefined): ModelEntry {
  const { huggingface, revision = 'main', dtypes = null, host: _, ...described } = entry
  const hub: HubSource = {
    repository: huggingface,
    revision,
    host: host ?? HOST,
    dtypes,
    maxInputTokens: entry.maxInputTokens ?? null,
    maxOutputTokens: entry.maxOutputTokens ?? null,
    created: entry.created ?? null,
  }
  return {
    ...described,
    type: 'model',
    name: entry.name ?? huggingface.slice(huggingface.indexOf('/') + 1),
    created: entry.created ?? EPOCH,
    ...limitsOf(hub, undefined),
    implementations: entry.implementations ?? [],
    hub,
  }
}

/**
 * Tokens of prompt and answer together, and of an answer. `context` is what the model was made for,
 * where that is known: a catalog may promise less, not more.
 */
export function limitsOf(
  hub: Pick<HubSource, 'maxInputTokens' | 'maxOutputTokens'>,
  context: number | undefined,
): Pick<ModelEntry, 'maxInputTokens' | 'maxOutputTokens'> {
  const promised = hub.maxInputTokens ?? context ?? CONTEXT
  const maxInputTokens = Math.min(promised, context ?? promised)
  return {
    maxInputTokens,
    maxOutputTokens: Math.min(maxInputTokens, hub.maxOutputTokens ?? CONTEXT),
  }
}
