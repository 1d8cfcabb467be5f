export type * from './generation.ts'
export type * from './host.ts'
export type * from './model.ts'
export type * from './predictor.ts'
