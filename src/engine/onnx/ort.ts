/** The type of onnxruntime-web, which all of its builds share. */

/** Namespace of the loaded build: `Tensor`, `env`, `InferenceSession`. */
export type Ort = typeof import('onnxruntime-web')
