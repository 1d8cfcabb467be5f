/** How much memory an implementation takes. */
import type { Implementation } from './schema.ts'

/** What weights need beside themselves when a model runs. */
const FACTOR = 1.25

/** Bytes that weights of that many bytes need to run. */
export const memoryOf = (bytes: number): number => Math.ceil(bytes * FACTOR)

/** Bytes of all resources. */
export const bytesOf = ({ resources }: Pick<Implementation, 'resources'>): number =>
  resources.reduce((sum, { bytes }) => sum + bytes, 0)

/** Whether its files are known: those of a model that MLC compiled are looked up when it is first loaded. */
export const isListed = ({ resources }: Pick<Implementation, 'resources'>): boolean =>
  resources.length > 0

/** Bytes of memory it needs: what the catalog says, else an estimate by its files. */
export const memoryFor = ({ requires, resources }: Implementation): number =>
  requires?.memory ?? memoryOf(bytesOf({ resources }))
