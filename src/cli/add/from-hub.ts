/** Adds a GGUF file in a repository of a hub, which pages download from there. */
import { expandHubEntry, toTokenLimits } from '../../catalog/hub/resolve-hub.ts'
import { sumBytes } from '../../catalog/memory-bytes.ts'
import type { HubEntry } from '../../catalog/schema.ts'
import { refuse } from '../../draft/refuse.ts'
import type { AddOptions, AddResult } from '../add.ts'
import { openCatalog, writeEntry } from '../add.ts'
import { lookUpHub } from '../commands/refresh.ts'

/** Options of {@link addFromHub}. */
export interface HubAddOptions extends Pick<
  AddOptions,
  | 'tag'
  | 'name'
  | 'devices'
  | 'dtypes'
  | 'tensors'
  | 'publicDir'
  | 'force'
  | 'dist'
  | 'signal'
  | 'onStep'
> {
  /** Repository, such as `owner/name`. */
  source: string
  /** Path of the file in it, or that of its first part. */
  file: string
  /** URL of the hub. Default: the public one. */
  host: string | undefined
}

/** A repository of a hub: an owner and a name. */
const REPOSITORY = /^[\w.-]+\/[\w.-]+$/

/**
 * Looks the file up at the current commit and writes its entry into the app's catalog. Rejects with
 * `invalid_request`, `unavailable`, `not_found` and `aborted`. In all cases nothing has changed.
 */
export async function addFromHub(options: HubAddOptions): Promise<AddResult> {
  const { source, file, tag, name, devices, host, signal, onStep } = options
  if (!REPOSITORY.test(source))
    throw refuse(`${source} is no repository.`, 'With --file, name one such as owner/name.')
  if (options.dtypes || options.tensors.length > 0)
    throw refuse('--dtypes and --tensor are not for GGUF files.', 'Leave them out.')
  const place = openCatalog(options)
  const origin = host === undefined ? undefined : host.replace(/\/*$/, '/')
  const written = { tag, huggingface: source, file, ...(name !== undefined && { name }) }
  const { hub } = expandHubEntry(written, origin)
  if (!hub) throw refuse(`${source} is no repository.`, 'Name one such as owner/name.')
  onStep(`Looking up ${source}`)
  const found = await lookUpHub(hub, { signal, host: undefined })
  const { revision, context, implementations, ...facts } = found
  const entry: HubEntry = {
    ...facts,
    ...written,
    ...(origin !== undefined && { host: origin }),
    ...(revision !== null && { revision }),
    ...toTokenLimits(hub, context),
    implementations: implementations.filter(({ device }) => devices.includes(device)),
  }
  await writeEntry(place, entry, options, async () => undefined)
  const files = implementations[0]?.resources ?? []
  return {
    entry: { ...expandHubEntry(entry, origin), tag },
    ...place,
    place: `which pages download from ${new URL(source, hub.host).href}`,
    files: files.length,
    bytes: sumBytes(files),
    splitFiles: [],
    notes: [],
    shapes: new Map(),
  }
}
