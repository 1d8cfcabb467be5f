/** The package that runs graphs, whichever of its builds is in use. */

/** The namespace of the build in use: `Tensor`, `env`, `InferenceSession`. */
export type Ort = typeof import('onnxruntime-web')
