/**
 * Remembers implementations whose graph has a part that this runtime cannot compute on their device.
 * They are not loaded again, until the files, the runtime or the browser change.
 */
import { listKeyParts } from '../../catalog/precision.ts'
import type { Entry, Implementation } from '../../catalog/schema.ts'
import { SELF_TEST_RUNTIME } from '../../device/gpu-verdict.ts'
import type { Database } from '../../store/database.ts'
import { type FactGroup, getDeviceFact, putFactOfGroup } from '../../store/device-facts.ts'
import type { Tag } from '../../types/index.ts'
import { isObject } from '../../values/objects.ts'

/** Unsupported implementations of a tag. They are void with any other runtime or browser. */
interface StoredReasons {
  where: string
  /** Parts that are not supported, by the key of the implementation. */
  reasons: Record<string, string>
  /** Time of the last record in milliseconds since 1970. */
  recorded: number
}

const UNSUPPORTED: FactGroup = {
  prefix: 'unsupported ',
  maxFacts: 200,
  getLastUsed: (fact) => (isStoredReasons(fact) ? fact.recorded : 0),
}

export class UnsupportedLoads {
  #database: Database
  /** Facts by tag. They apply before they are stored. */
  #facts = new Map<Tag, Promise<StoredReasons>>()

  constructor(database: Database) {
    this.#database = database
  }

  /** Resolves with what is not supported, by the ids of the implementations that cannot run. */
  async find({
    tag,
    implementations,
  }: Pick<Entry, 'tag' | 'implementations'>): Promise<ReadonlyMap<string, string>> {
    const { reasons } = await this.#read(tag)
    return new Map(
      implementations.flatMap((implementation) => {
        const why = reasons[keyOf(implementation)]
        return why === undefined ? [] : [[implementation.id, why] as const]
      }),
    )
  }

  /** Applies the result of a load at once, and stores it. */
  record({ tag }: Pick<Entry, 'tag'>, implementation: Implementation, why: string): void {
    const next = this.#read(tag).then(({ where, reasons }) => ({
      where,
      reasons: { ...reasons, [keyOf(implementation)]: why },
      recorded: Date.now(),
    }))
    this.#facts.set(tag, next)
    // If it cannot be stored, the next host tries the implementation once more.
    next
      .then((fact) => putFactOfGroup(this.#database, UNSUPPORTED, subjectOf(tag), fact))
      .catch(() => undefined)
  }

  #read(tag: Tag): Promise<StoredReasons> {
    const where = `${SELF_TEST_RUNTIME} | ${navigator.userAgent}`
    const reading =
      this.#facts.get(tag) ??
      getDeviceFact(this.#database, subjectOf(tag), isStoredReasons)
        .catch(() => undefined)
        .then((fact) => (fact?.where === where ? fact : { where, reasons: {}, recorded: 0 }))
    this.#facts.set(tag, reading)
    return reading
  }
}

const subjectOf = (tag: Tag): string => `${UNSUPPORTED.prefix}${tag}`

/** Returns the key of an implementation. Its digests cause changed files to be tried again. */
const keyOf = (one: Implementation): string => listKeyParts(one).join(' ')

function isStoredReasons(value: unknown): value is StoredReasons {
  return (
    isObject(value) &&
    typeof value['where'] === 'string' &&
    typeof value['recorded'] === 'number' &&
    isObject(value['reasons'])
  )
}
