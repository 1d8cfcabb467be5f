/** The tools that the settings turn on, ready to run. */
import { BUILT_IN } from './built-in.ts'
import { runSandboxed } from './sandbox.ts'
import type { OwnTool, ToolSettings } from './store.ts'
import type { Tool } from './types.ts'

/** Returns the tools that requests offer, in the order of the list. */
export function enabledTools({ enabled, own }: ToolSettings): Tool[] {
  return [...BUILT_IN, ...own.map(toTool)].filter(({ name }) => enabled.includes(name))
}

function toTool({ name, description, parameters, code }: OwnTool): Tool {
  return {
    name,
    description,
    parameters: JSON.parse(parameters) as Record<string, unknown>,
    run: code.trim() === '' ? undefined : (args, signal) => runSandboxed(code, args, { signal }),
  }
}
