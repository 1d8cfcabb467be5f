/** Determines the implementation that this device uses, with its files. */
import { hasResources } from '../../catalog/memory-bytes.ts'
import type { Entry } from '../../catalog/schema.ts'
import type { ImplementationSelector } from '../choice/selector.ts'
import type { ResolvedImplementation } from '../models/models.ts'
import type { Entries } from './entries.ts'

/**
 * Resolves with the chosen implementation and its files, which are looked up if they are not
 * listed. If the files reveal further requirements, it chooses again. `device` is as in
 * {@link ImplementationSelector.select}.
 */
export async function resolveImplementation(
  { entries, selector }: { entries: Entries; selector: ImplementationSelector },
  entry: Entry,
  signal: AbortSignal,
  device?: string,
): Promise<ResolvedImplementation> {
  let complete = await entries.complete(entry, signal)
  for (;;) {
    const { implementation } = await selector.select(complete, device)
    if (hasResources(implementation)) return { entry: complete, implementation }
    complete = await entries.listFiles(complete, implementation, signal)
  }
}
