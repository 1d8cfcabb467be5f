/** Everything that is known of the entries of the catalog. */
import type { ModelState, Server, StoredTag, Tag } from '../../src/index.ts'
import { listModels, type ListedModel } from '../listing.ts'

/** Facts of one entry. */
export interface EntryFacts {
  state: ModelState
  description?: string | undefined
  /** Part of `GET /v1/models`; absent for a predictor. */
  listed?: ListedModel
  /** Stored files; absent if there are none. */
  stored?: StoredTag
}

/** Resolves with the facts of all entries, by tag. */
export async function readFacts(server: Server): Promise<Map<Tag, EntryFacts>> {
  const [states, models, stored] = await Promise.all([
    server.models.list(),
    listModels(server),
    server.storage.list(),
  ])
  const facts = states.map(async (state): Promise<[Tag, EntryFacts]> => {
    const { tag } = state
    const listed = models.find(({ id }) => id === tag)
    const files = stored.find((one) => one.tag === tag)
    // The listing has no predictors without an endpoint.
    const described = listed ?? (await server.predictor(tag).catch(() => undefined))
    return [tag, { state, description: described?.description, listed, stored: files }]
  })
  return new Map(await Promise.all(facts))
}
