/** The tools that are turned on, and those that the user wrote. They stay in this browser. */
import type { ToolChoice } from './wire.ts'

const KEY = 'playground:tools'

/** A tool of the user. */
export interface OwnTool {
  name: string
  description: string
  /** JSON Schema of the arguments, as text. */
  parameters: string
  /** Code that runs in the sandbox, with the variable `args`; empty if the user answers the call. */
  code: string
}

export interface ToolSettings {
  /** Names of the tools that requests offer. */
  enabled: readonly string[]
  own: readonly OwnTool[]
  choice: Extract<ToolChoice, 'auto' | 'required'>
  maxRounds: number
}

const DEFAULTS: ToolSettings = { enabled: [], own: [], choice: 'auto', maxRounds: 5 }

export function readToolSettings(): ToolSettings {
  const stored = JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<ToolSettings>
  return { ...DEFAULTS, ...stored }
}

export function writeToolSettings(settings: ToolSettings): void {
  localStorage.setItem(KEY, JSON.stringify(settings))
}
