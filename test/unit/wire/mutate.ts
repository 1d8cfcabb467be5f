/** Bodies with something else in some places. */
import type { Chance } from '../../support/random.ts'

export type Path = ReadonlyArray<string | number>

/** All places in a value, itself left out. */
export function pathsOf(value: unknown, at: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => {
    const path = [...at, Array.isArray(value) ? Number(key) : key]
    return [path, ...pathsOf(inner, path)]
  })
}

/** A copy with something else in one place; `undefined` takes it out. */
export function put(value: unknown, [key, ...rest]: Path, replacement: unknown): unknown {
  if (key === undefined) return replacement
  const copy = (Array.isArray(value) ? [...value] : { ...(value as object) }) as Record<
    string | number,
    unknown
  >
  const inner = put(copy[key], rest, replacement)
  if (inner !== undefined) copy[key] = inner
  else if (Array.isArray(copy)) copy.splice(Number(key), 1)
  else delete copy[key]
  return copy
}

const IMAGES = ['image', 'image_url', 'input_image']

/** A copy of a body for models that do not look at images. */
export function withoutImages(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const isImage = (each: unknown): boolean =>
      typeof each === 'object' &&
      each !== null &&
      IMAGES.includes(String(Reflect.get(each, 'type')))
    return value.filter((each) => !isImage(each)).map(withoutImages)
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, withoutImages(inner)]),
  )
}

/** A copy with some of the values in so many of its places. */
export function mutate(
  body: unknown,
  values: readonly unknown[],
  chance: Chance,
  times: number,
): unknown {
  let mutant = body
  for (let round = 0; round < times; round += 1) {
    const paths = pathsOf(mutant)
    if (paths.length > 0) mutant = put(mutant, chance.pick(paths), chance.pick(values))
  }
  return mutant
}

/** Fields of these names, which a space separates, each of the value `null`. */
export const nulls = (names: string) =>
  Object.fromEntries(names.split(' ').map((name) => [name, null]))
