/** Index of the catalog by the digests of files, for the store. */
import { hasResources } from '../../catalog/memory-bytes.ts'
import type { Entry, Resource } from '../../catalog/schema.ts'
import type { CatalogIndex } from '../../store/inventory.ts'

export async function createCatalogIndex(entries: {
  all(): Promise<Entry[]>
}): Promise<CatalogIndex> {
  const all = await entries.all()
  return {
    tagsOf: (sha256) =>
      all
        .filter((entry) => resourcesOf([entry]).some((resource) => resource.sha256 === sha256))
        .map(({ tag }) => tag),
    needs(tag, sha256) {
      const implementations = all.find((one) => one.tag === tag)?.implementations ?? []
      // An unlisted implementation may have files that an earlier version stored.
      if (implementations.length === 0 || !implementations.every(hasResources)) return undefined
      return implementations.some(({ resources }) => resources.some((one) => one.sha256 === sha256))
    },
    isComplete(tag, stored) {
      const entry = all.find((one) => one.tag === tag)
      const implementations = entry?.implementations.filter(hasResources) ?? []
      if (implementations.length === 0) return undefined
      return implementations.some(({ resources }) =>
        resources.every(({ sha256 }) => stored.has(sha256)),
      )
    },
  }
}

export function resourcesOf(entries: readonly Entry[]): Resource[] {
  return entries.flatMap((entry) => entry.implementations.flatMap((one) => one.resources))
}
