/** Everything that is known of the entries of the catalog. */
import type { ModelState, Server, StoredTag, Tag } from '../../src/index.ts'
import { listModels, type ListedModel } from '../listing.ts'

/** Facts of one entry. */
export interface EntryFacts {
  state: ModelState
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
  return new Map(
    states.map((state) => {
      const listed = models.find(({ id }) => id === state.tag)
      const files = stored.find(({ tag }) => tag === state.tag)
      return [state.tag, { state, listed, stored: files }]
    }),
  )
}
