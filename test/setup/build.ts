import { buildDemo } from './demo.ts'

/** Runs once before the tests of the three engines, which start their browsers themselves. */
export default function setup(): void {
  buildDemo()
}
