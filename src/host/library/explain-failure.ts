/** Explains failed loads and runs by what the store and the catalog know. */
import { listObstacles, type Preference } from '../../catalog/choose-implementation.ts'
import type { Entry, Implementation } from '../../catalog/schema.ts'
import { suggestSmaller } from '../../catalog/memory-bytes.ts'
import type { Capabilities } from '../../device/capabilities.ts'
import { nameFailure } from '../../engine/failure.ts'
import { InoriginError } from '../../error.ts'
import { deleteDamagedChunks } from '../../store/assembly.ts'
import type { Database } from '../../store/database.ts'
import type { Entries } from './entries.ts'

/**
 * Creates the function that resolves with the error to report for a failure. The error names the
 * model, and says that stored files were damaged, or names a smaller model. The look-up of files that have changed on
 * their server is deleted.
 */
export function createFailureExplainer(options: {
  database: Database
  entries: Entries
  device: () => Promise<Capabilities>
  preference: Preference
}) {
  const { database, entries, device, preference } = options
  const checkDamage = createDamageCheck(database)
  return async (error: unknown, entry: Entry, failed: Implementation): Promise<unknown> => {
    // The reader of a stream cancels it after the last event, so this is the end of most requests.
    if (InoriginError.from(error).kind === 'aborted') return error
    const damage = await checkDamage(error, failed)
    if (damage) return nameFailure(damage, entry.tag)
    const [all, capabilities] = await Promise.all([entries.all(), device()])
    const fits = (one: Implementation) => listObstacles(one, capabilities, preference).length === 0
    const explained = suggestSmaller(InoriginError.from(error), all, entry.tag, failed, fits)
    if (explained.code === 'hash_mismatch') await entries.deleteLookUp(entry, failed)
    return nameFailure(explained, entry.tag)
  }
}

/** Codes of errors that a damaged file may cause. */
const DAMAGE_ERROR_CODES: ReadonlySet<string | undefined> = new Set([
  undefined,
  'model_unusable',
  'runtime_crashed',
])

/** Returns `true` if a damaged file may be the cause. Aborts and invalid requests are excluded. */
const mayBeDamage = ({ kind, code }: InoriginError): boolean =>
  (kind === 'internal' || kind === 'unavailable') && DAMAGE_ERROR_CODES.has(code)

/**
 * Creates the function that checks the stored files of an implementation whose load failed, and
 * deletes damaged chunks. It resolves with the error to report if there were any.
 */
function createDamageCheck(database: Database) {
  /** Digests of checked implementations. Each is checked once, as a check is as slow as a load. */
  const checked = new Set<string>()
  return async (
    thrown: unknown,
    { resources }: Implementation,
  ): Promise<InoriginError | undefined> => {
    const error = InoriginError.from(thrown)
    const hashes = resources.map(({ sha256 }) => sha256)
    if (!mayBeDamage(error) || checked.has(hashes.join())) return undefined
    checked.add(hashes.join())
    const bytes = await deleteDamagedChunks(database, hashes, new AbortController().signal)
    if (bytes === 0) return undefined
    const what = `${bytes} stored bytes were damaged or lost on this device and have been deleted`
    return new InoriginError('unavailable', `${what}. Load it again to download them.`, {
      code: 'storage_damaged',
      retryAfter: 1,
      cause: error,
    })
  }
}
