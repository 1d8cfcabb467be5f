/** WebLLM's own list of models; large, so that it is loaded where a catalog names one of them. */
import list from './list.json' with { type: 'json' }
import type { MlcRecord } from './record.ts'

export interface MlcList {
  /** Of WebLLM. */
  version: string
  records: readonly MlcRecord[]
}

export const MLC_LIST = list as MlcList
