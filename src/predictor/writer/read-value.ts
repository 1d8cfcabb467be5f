/** Reads single values among checked inputs. */
import type { ParsedInput } from '../parse-inputs.ts'

/** Returns the only value of an input; `undefined` if it is not given. */
export function readValue(checked: ReadonlyMap<string, ParsedInput>, name: string): unknown {
  const value = checked.get(name)
  return value?.form === 'elements' ? value.elements.data[0] : undefined
}
