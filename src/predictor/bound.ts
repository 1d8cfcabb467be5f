/** Types of a signature that is bound to the tensors of a model. */
import type { AudioLayout } from '../catalog/schema.ts'
import type { InputParameter, OutputParameter } from '../types/index.ts'
import type { ElementType } from '../values/elements.ts'
import type { InputTensorSpec, OutputTensorSpec } from './tensor-codec.ts'

/** Input with a conversion of sound. */
export interface BoundSound extends BoundInput {
  layout: AudioLayout
  /** Number of new samples of each run; `null` for all of them. */
  window: number | null
}

/** Input and output of a state. */
export interface BoundState {
  input: string
  output: string
  type: Exclude<ElementType, 'string'>
  /** Shape of the first value, which is zeros; `null` if the parameter has a default value. */
  shape: readonly number[] | null
}

export interface BoundInput {
  parameter: InputParameter
  tensor: string
  spec: InputTensorSpec
}

export interface BoundOutput {
  parameter: OutputParameter
  tensor: string
  type: ElementType
  spec: OutputTensorSpec
}

export interface BoundSignature {
  inputs: readonly BoundInput[]
  outputs: readonly BoundOutput[]
  states: readonly BoundState[]
  /** Input that takes sound, or `null`. */
  sound: BoundSound | null
}
