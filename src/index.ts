/** What an app imports. */
export { serve } from './serve.ts'
export { InoriginError } from './error.ts'
export type { ServeOptions } from './serve.ts'
export type {
  ImportOptions,
  ModelStorage,
  Models,
  PredictOptions,
  PredictorHandle,
  RepairOptions,
  Server,
  TaskOptions,
} from './server.ts'
export type { ErrorCode } from './error-codes.ts'
export type { ErrorDetails, ErrorKind } from './error.ts'
export type {
  Binding,
  CatalogDocument as Catalog,
  Dtype,
  HubEntry,
  ImageLayout,
  Implementation,
  MlcEntry,
  ModelEntry,
  PredictorEntry,
  Requirements,
  Resource,
} from './catalog/schema.ts'
export type {
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
  PredictionResult,
  Predictor,
  Reason,
  RepairProgress,
  Signature,
  StorageUsage,
  StoredResource,
  StoredTag,
  Tag,
} from './types/index.ts'
// All of it: a declaration of the app's adds to what is exported so.
export type * from './typed.ts'
