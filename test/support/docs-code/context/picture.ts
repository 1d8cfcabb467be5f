import { canvas } from './canvas.ts'

export const dataUrl = canvas.toDataURL()
