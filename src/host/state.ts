/** State of a tag on this device: whether it is loaded, stored or remote, and its size. */
import { bytesOf, isListed } from '../catalog/memory.ts'
import type { Entry, Implementation } from '../catalog/schema.ts'
import type { Database } from '../store/open.ts'
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
  const isKnown = implementation ? isListed(implementation) : entry.implementations.some(isListed)
  const isHere = implementation && isKnown && (await areHere(database, implementation))
  const stored = isHere ? 'stored' : 'remote'
  return {
    tag,
    type,
    name,
    status: hosted ? (hosted.ready ? 'loaded' : 'loading') : stored,
    bytes: isKnown ? bytesOf(implementation ?? { resources: [] }) : null,
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
