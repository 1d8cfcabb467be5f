/**
 * Runs the operators that the decoder of the self-test lacks: recurrent cells, `If`, `Loop`, padding
 * by reflection, and convolutions of the layouts in use.
 */
import { InoriginError } from '../../../error.ts'
import type { Runtime } from '../runtime.ts'
import { draw, findLargestError } from './draw.ts'
import { LOCATION } from './graphs.ts'
import { EXPECTED_OUTPUTS, OPERATOR_GRAPH, OPERATOR_WEIGHTS } from './operator-graph.ts'

/** Resolves with the largest error of any output. */
export async function findOperatorError({ ort, createSession }: Runtime): Promise<number> {
  const graph = Uint8Array.from(atob(OPERATOR_GRAPH), (each) => each.charCodeAt(0))
  const weights = Float32Array.from(
    { length: OPERATOR_WEIGHTS },
    (_, index) => (draw(index) - 128) / 256,
  )
  const session = await createSession(new Blob([graph]), {
    externalData: [{ path: LOCATION, data: new Blob([weights]) }],
  })
  try {
    const outputs = await session.run({ scale: new ort.Tensor('float32', [1], []) })
    const errors = Object.entries(EXPECTED_OUTPUTS).map(([name, expected]) => {
      const output = outputs[name]
      if (!output) throw new InoriginError('internal', `The GPU self-test returned no ${name}.`)
      return findLargestError([...(output.data as Float32Array)], expected)
    })
    return Math.max(...errors)
  } finally {
    await session.release()
  }
}
