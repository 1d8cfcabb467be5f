/** Holds WebLLM's model list, which is large and only loaded if a catalog names a model of it. */
import list from './list.json' with { type: 'json' }
import type { MlcRecord } from './record-schema.ts'

export interface MlcList {
  version: string
  records: readonly MlcRecord[]
}

export const MLC_LIST = list as MlcList
