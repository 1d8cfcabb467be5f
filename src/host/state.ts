/** State of a tag on this device: whether it is loaded, stored or remote, and its size. */
import { sumResourceBytes, hasResources } from '../catalog/memory-bytes.ts'
import type { Entry, Implementation } from '../catalog/schema.ts'
import type { Database } from '../store/database.ts'
import type { ModelState } from '../types/index.ts'
import type { Choices } from './choices.ts'
import type { Models } from './models.ts'
import { areHere } from './race.ts'

export interface StateOptions {
  database: Database
  models: Pick<Models, 'of'>
  choices: Pick<Choices, 'pick'>
}

export async function stateOf(
  entry: Entry,
  { database, models, choices }: StateOptions,
): Promise<ModelState> {
  const { tag, type, name } = entry
  const all = models.of(tag)
  const hosted = all.findLast(({ ready }) => ready) ?? all.at(-1)
  const implementation = hosted?.implementation ?? (await fitting(entry, choices))
  const isKnown = implementation
    ? hasResources(implementation)
    : entry.implementations.some(hasResources)
  const isHere = implementation && isKnown && (await areHere(database, implementation))
  const stored = isHere ? 'stored' : 'remote'
  return {
    tag,
    type,
    name,
    status: hosted ? (hosted.ready ? 'loaded' : 'loading') : stored,
    bytes: isKnown ? sumResourceBytes(implementation ?? { resources: [] }) : null,
    device: implementation?.device ?? null,
  }
}

function fitting(
  entry: Entry,
  choices: Pick<Choices, 'pick'>,
): Promise<Implementation | undefined> {
  return choices.pick(entry).then(
    ({ implementation }) => implementation,
    () => undefined,
  )
}
