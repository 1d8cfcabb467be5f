/** The editor of a tool: name, description, a JSON Schema that is checked as it is typed, and code. */
import { button, element } from '../dom.ts'
import { wordsOf } from '../notice.ts'
import { addField, type Field } from './field.ts'
import { findMismatch, findSchemaError, parseJson } from './schema.ts'
import { runSandboxed } from './sandbox.ts'
import type { OwnTool } from './store.ts'

const NAME = /^[a-zA-Z0-9_-]{1,64}$/

const EXAMPLE: OwnTool = {
  name: '',
  description: '',
  parameters: `{
  "type": "object",
  "properties": {
    "city": { "type": "string", "description": "Name of the city" }
  },
  "required": ["city"],
  "additionalProperties": false
}`,
  code: '',
}

export interface Editor {
  section: HTMLElement
  /** Puts a tool into the fields. */
  edit(tool: OwnTool): void
}

/**
 * Creates the editor. It calls `save` with a valid tool, and with the name of the tool that was
 * edited. `taken` returns the names of all tools.
 */
export function createEditor(
  taken: () => readonly string[],
  save: (tool: OwnTool, before: string | undefined) => void,
): Editor {
  const section = element('details', 'tool-editor')
  const summary = element('summary', '', 'New tool')
  const form = element('form', 'form')
  let before: string | undefined
  const fields = addFields(form, (name) => name !== before && taken().includes(name))
  const said = element('pre', 'tool-code')
  said.role = 'status'

  function edit(tool: OwnTool): void {
    before = tool.name === '' ? undefined : tool.name
    summary.textContent = before === undefined ? 'New tool' : `Edit ${before}`
    for (const key of KEYS) fields[key].input.value = tool[key]
    fields.trial.input.value = '{}'
    said.textContent = ''
    for (const field of Object.values(fields)) field.clear()
    if (before === undefined) return
    section.open = true
    fields.name.input.focus()
  }

  form.noValidate = true
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const [wrong] = KEYS.filter((key) => !fields[key].update())
    if (wrong) return fields[wrong].input.focus()
    const values = KEYS.map((key) => [key, fields[key].input.value])
    save(Object.fromEntries(values) as OwnTool, before)
    edit(EXAMPLE)
    section.open = false
    summary.focus()
  })
  const row = element('div', 'row wide')
  const submit = element('button', 'plain strong', 'Save')
  row.append(
    submit,
    button('Try it', 'plain', () => void tryTool(fields, said)),
  )
  form.append(row, said)
  section.append(summary, form)
  edit(EXAMPLE)
  return { section, edit }
}

/** The fields of a tool, in the order in which they are checked. */
const KEYS = ['name', 'description', 'parameters', 'code'] as const

type Fields = Record<(typeof KEYS)[number] | 'trial', Field>

/** Adds the fields with their checks. `isTaken` tells whether another tool has a name. */
function addFields(form: HTMLFormElement, isTaken: (name: string) => boolean): Fields {
  const code = (): HTMLTextAreaElement => element('textarea', 'tool-code')
  const fields: Fields = {
    name: addField(form, 'Name', element('input', '')),
    description: addField(form, 'Description for the model', element('input', '')),
    parameters: addField(form, 'Parameters, as JSON Schema', code()),
    code: addField(form, 'JavaScript with the variable args', code()),
    trial: addField(form, 'Arguments to try it with', code()),
  }
  const { name, description, parameters, trial } = fields
  name.check((value) => {
    if (!NAME.test(value)) return 'A name has 1 to 64 letters, digits, "_" and "-".'
    return isTaken(value) ? `"${value}" exists.` : undefined
  })
  description.check((value) => (value.trim() === '' ? 'Say what the tool does.' : undefined))
  parameters.check(findSchemaError)
  trial.check((value) => findTrialError(parameters.input.value, value))
  parameters.input.addEventListener('input', () => trial.update())
  const where = 'It runs in a sandbox without a network.'
  const hint = element('p', 'quiet', `${where} Leave it empty to answer the call yourself.`)
  hint.id = 'tool-code-hint'
  fields.code.input.setAttribute('aria-describedby', hint.id)
  fields.code.input.closest('label')?.after(hint)
  return fields
}

/** Runs the code that is being written, and shows its result. */
async function tryTool({ code, trial }: Fields, said: HTMLElement): Promise<void> {
  const args = parseJson(trial.input.value)
  if (typeof args === 'string' || !trial.update()) return trial.input.focus()
  if (code.input.value.trim() === '') {
    said.textContent = 'There is no code to run. You answer the calls of this tool.'
    return
  }
  said.textContent = 'Running …'
  try {
    const result = await runSandboxed(code.input.value, args.value as Record<string, unknown>)
    said.textContent = result === '' ? 'It returned nothing.' : result
  } catch (error) {
    said.textContent = wordsOf(error)
  }
}

function findTrialError(schema: string, text: string): string | undefined {
  const args = parseJson(text)
  if (typeof args === 'string') return args
  if (findSchemaError(schema) !== undefined) return undefined
  return findMismatch(JSON.parse(schema) as Record<string, unknown>, args.value)
}
