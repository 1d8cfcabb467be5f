/** The public exports of the package `inorigin`. */
export { serve } from './serve.ts'
export { InoriginError } from './error.ts'
export type { ServeOptions } from './serve.ts'
export type { UpstreamServer } from './allowed-servers.ts'
export type { Upstream } from './catalog/upstream-schema.ts'
export type {
  ImportOptions,
  LoadOptions,
  Models,
  ModelStorage,
  PredictOptions,
  PredictorHandle,
  RepairOptions,
  Server,
  Session,
  TaskOptions,
} from './server.ts'
export type { ErrorCode, ErrorDetails, ErrorKind } from './error.ts'
export type { Dtype } from './catalog/hub/variants.ts'
export type {
  AudioLayout,
  Binding,
  CatalogDocument as Catalog,
  CatalogInput,
  HubEntry,
  ImageLayout,
  Implementation,
  MlcEntry,
  ModelEntry,
  PredictorEntry,
  Requirements,
  Resource,
  Step,
} from './catalog/schema.ts'
export type {
  Bridge,
  BridgeOptions,
  BridgeState,
  Device,
  DeviceSummary,
  EnumerationMember,
  Explanation,
  ImportProgress,
  Imported,
  InputParameter,
  LoadPhase,
  LoadProgress,
  ModelState,
  OutputParameter,
  ParameterType,
  Precision,
  PredictionResult,
  Predictor,
  Reason,
  RepairProgress,
  Route,
  Signature,
  StorageUsage,
  StoredAsset,
  StoredResource,
  StoredTag,
  Tag,
  TensorValue,
  TracedError,
  TracedOperation,
  TraceEvent,
} from './types/index.ts'
// Exported as a whole, so that an app can merge declarations into `Predictors`.
export type * from './typed.ts'
