/** For work that a device may never come to an end with. */
export { within } from '../store/patience.ts'
