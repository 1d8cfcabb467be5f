/** The catalog's schema as JSON Schema; the comments on its fields are their descriptions there. */
import { join } from 'node:path'
import { toJsonSchema } from '@valibot/to-json-schema'
import { parseSync, runnerImport, Visitor, type Plugin } from 'vite'
import type { publishedCatalogSchema } from '../../src/catalog/schema.ts'

/** Syntax of a schema: a name, that of a module, or a call. */
const SCHEMA_TYPES = ['Identifier', 'MemberExpression', 'CallExpression']

const CATALOG = join(import.meta.dirname, '../../src/catalog')

/** Of every catalog that can be used, for editors and other languages. */
export async function catalogJsonSchema(): Promise<Record<string, unknown>> {
  type Module = { publishedCatalogSchema: typeof publishedCatalogSchema }
  const path = join(CATALOG, 'schema.ts')
  const { module } = await runnerImport<Module>(path, {
    plugins: [describeFields()],
    logLevel: 'error',
  })
  const schema = toJsonSchema(module.publishedCatalogSchema, {
    typeMode: 'input',
    ignoreActions: ['check'],
  })
  return { title: 'inorigin catalog', ...schema }
}

/** Lets schemas carry the comments on them: `/** Why *\/ name: text` becomes one with a description. */
function describeFields(): Plugin {
  return {
    name: 'inorigin:describe-fields',
    enforce: 'pre',
    transform(code, id) {
      return id.startsWith(CATALOG) && code.includes("from 'valibot'")
        ? described(code, id)
        : undefined
    },
  }
}

function described(code: string, id: string): string {
  const { program, comments } = parseSync(id, code)
  const edits: { at: number; text: string }[] = []
  const add = (at: number, value: { start: number; end: number }, name = ''): void => {
    const comment = comments.findLast((one) => one.end <= at)
    if (!comment?.value.startsWith('*') || code.slice(comment.end, at).trim() !== '') return
    const text = comment.value
      .replaceAll(/^\s*\*+ ?/gm, '')
      .replaceAll(/\s+/g, ' ')
      .trim()
    // Both ends are edited apart, since a schema may hold others.
    edits.push({ at: value.start, text: `${name}v.pipe(` })
    edits.push({ at: value.end, text: `, v.description(${JSON.stringify(text)}))` })
  }
  new Visitor({
    Property({ start, key, value, shorthand }) {
      // Objects in a schema have comments of their own.
      if (shorthand && key.type === 'Identifier') add(start, value, `${key.name}: `)
      else if (SCHEMA_TYPES.includes(value.type)) add(start, value)
    },
  }).visit(program)
  return edits
    .toSorted((one, other) => other.at - one.at)
    .reduce((text, edit) => text.slice(0, edit.at) + edit.text + text.slice(edit.at), code)
}
