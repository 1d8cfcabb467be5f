/** The digits, as their catalog entry says or altered. */
import type { PredictorEntry } from '../../../src/catalog/schema.ts'
import type { OpenPredictor } from '../../../src/predictor/open-predictor.ts'
import type { Device } from '../../../src/types/index.ts'
import { entryOf, openEmbedded } from './embedded.ts'

export const digitsEntry = (): PredictorEntry => entryOf('digits')

/** The predictor in single precision on a device; `change` alters its entry first. */
export const openDigits = (
  device: Device,
  change?: (entry: PredictorEntry) => PredictorEntry,
): Promise<OpenPredictor> => openEmbedded('digits', `fp32-${device}`, { change })
