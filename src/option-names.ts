/** Names of the options that the methods of the server handle take. The types keep them complete. */
import type { ImportOptions, RepairOptions } from './model-storage.ts'
import type { LoadOptions, PredictOptions, TaskOptions } from './server.ts'
import type { BridgeOptions } from './types/index.ts'
import type { OptionNames } from './validate-arguments.ts'

export const SIGNAL_ONLY: OptionNames<{ signal?: AbortSignal }> = { signal: true }
export const CONFIGURATION_ONLY: OptionNames<Pick<PredictOptions, 'configuration'>> = {
  configuration: true,
}
export const TASK_OPTIONS: OptionNames<TaskOptions> = { signal: true, onProgress: true }
export const LOAD_OPTIONS: OptionNames<LoadOptions> = { ...TASK_OPTIONS, retryCrashed: true }
export const PREDICT_OPTIONS: OptionNames<PredictOptions> = { ...TASK_OPTIONS, configuration: true }
export const BRIDGE_OPTIONS: OptionNames<BridgeOptions> = {
  token: true,
  reconnect: true,
  onChange: true,
  signal: true,
}
export const REPAIR_OPTIONS: OptionNames<RepairOptions> = TASK_OPTIONS
export const IMPORT_OPTIONS: OptionNames<ImportOptions> = {
  ...REPAIR_OPTIONS,
  name: true,
  tensors: true,
}
