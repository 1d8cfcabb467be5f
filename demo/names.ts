/** Names of models as people read them. */
import type { Tag } from '../src/index.ts'

const names = new Map<Tag, string>()

/** Notes the name of a model that `GET /v1/models` lists. */
export const noteName = (tag: Tag, name: string): void => void names.set(tag, name)

/** Returns the name of a model; the end of its tag if it is not listed. */
export const nameOf = (tag: Tag): string => names.get(tag) ?? tag.slice(tag.indexOf('/') + 1)
