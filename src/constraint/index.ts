/** Compiles constraints on the text of an answer, and matches tokens against them. */
export { createConstraintCompiler } from './compiler.ts'
export type { ConstraintCompiler, ConstraintCompilerOptions } from './compiler.ts'
export type { Constraint, JsonConstraint, JsonSchema, TaggedConstraint } from './constraint.ts'
export type { Matcher } from './matcher.ts'
export type { WasmSource } from './compiler.ts'
export { ConstraintError } from './constraint.ts'
