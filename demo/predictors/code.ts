/** A prediction as code for the console of this page, in the two forms in which it can be asked for. */
import type { FieldValue } from './field.ts'

/** Values of the inputs that are not left out, by name. */
export type FieldValues = ReadonlyMap<string, FieldValue>

/** Returns the call of `server.predict`. In this page, the server is `inorigin`. */
export function toPredictCode(tag: string, values: FieldValues): string {
  const inputs = [...values].map(([name, { code }]) => `  ${toKey(name)}: ${code},\n`)
  return `const { outputs, latency, device } = await inorigin.predict(${quote(tag)}, {
${inputs.join('')}})
console.log(outputs, latency, device)
`
}

/** Returns the same prediction as a request of `POST /v1/predictions/remote`. */
export function toFetchCode(tag: string, values: FieldValues, baseURL: string): string {
  const inputs = [...values].map(
    ([name, { code, remote = code }]) => `      ${toKey(name)}: ${remote},\n`,
  )
  const needsFiles = inputs.some((line) => line.includes('toDataURL(document'))
  return `${needsFiles ? READ_FILE : ''}const response = await fetch(${quote(`${new URL(baseURL).pathname}/predictions/remote`)}, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    tag: ${quote(tag)},
    inputs: {
${inputs.join('')}    },
  }),
})
const { results, latency, error } = await response.json()
console.log(results, latency, error)
`
}

const READ_FILE = `const toDataURL = (file) =>
  new Promise((resolve) => {
    const reader = new FileReader()
    reader.onload = () => resolve(reader.result)
    reader.readAsDataURL(file)
  })
`

function toKey(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
