/** Downloads a set of resources in a dedicated worker, as the host does. */
import { InoriginError } from '../../../src/error.ts'
import type { WantedResource } from '../../../src/store/db.ts'
import type { Tuning } from '../../../src/store/download.ts'
import { ensure } from '../../../src/store/ensure.ts'
import { openDatabase } from '../../../src/store/open.ts'

export interface Job {
  database: string
  wanted: WantedResource[]
  tuning: Tuning
}

addEventListener('message', ({ data }: MessageEvent<Job>) => {
  const { database, wanted, tuning } = data
  ensure(openDatabase(database), wanted, { signal: new AbortController().signal, tuning }).then(
    (files) => postMessage({ files }),
    (thrown: unknown) => postMessage({ error: InoriginError.from(thrown).toRecord() }),
  )
})
