/** Determines the implementation that this device uses, with its files. */
import { hasResources } from '../catalog/memory-bytes.ts'
import type { Entry } from '../catalog/schema.ts'
import type { Choices } from './choices.ts'
import type { Entries } from './entries.ts'
import type { Given } from './kept.ts'

/**
 * Resolves with the chosen implementation and its files, which are looked up if they are not
 * listed. If the files reveal further requirements, it chooses again. `device` is as in
 * {@link Choices.pick}.
 */
export async function settle(
  { entries, choices }: { entries: Entries; choices: Choices },
  entry: Entry,
  signal: AbortSignal,
  device?: string,
): Promise<Given> {
  let complete = await entries.complete(entry, signal)
  for (;;) {
    const { implementation } = await choices.pick(complete, device)
    if (hasResources(implementation)) return { entry: complete, implementation }
    complete = await entries.list(complete, implementation, signal)
  }
}
