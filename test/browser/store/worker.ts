/** Downloads a set of resources in a dedicated worker, as the host does. */
import { InoriginError } from '../../../src/error.ts'
import type { WantedResource } from '../../../src/store/db.ts'
import type { DownloadTuning } from '../../../src/store/download.ts'
import { ensureResources } from '../../../src/store/ensure.ts'
import { openDatabase } from '../../../src/store/database.ts'

export interface Job {
  database: string
  wanted: WantedResource[]
  tuning: DownloadTuning
}

addEventListener('message', ({ data }: MessageEvent<Job>) => {
  const { database, wanted, tuning } = data
  ensureResources(openDatabase(database), wanted, {
    signal: new AbortController().signal,
    tuning,
  }).then(
    (files) => postMessage({ files }),
    (thrown: unknown) => postMessage({ error: InoriginError.from(thrown).toRecord() }),
  )
})
