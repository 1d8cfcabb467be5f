import { expect, test } from 'vitest'
import { listFolder } from '../../../src/draft/user-files.ts'

type Tree = { [name: string]: Tree | string }

/** The handle of a folder with that in it. */
function folderOf(tree: Tree): FileSystemDirectoryHandle {
  const handles = () =>
    Object.entries(tree).map(([name, inside]) =>
      typeof inside === 'string'
        ? { kind: 'file', name, getFile: async () => new File([inside], name) }
        : { ...folderOf(inside), kind: 'directory', name },
    )
  return {
    values: async function* () {
      yield* handles()
    },
  } as never
}

const never = new AbortController().signal

/** As many things as that, each made by its number. */
const many = <T>(count: number, make: () => T) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${index}`, make()]))

test('files have their paths in the folder', async () => {
  const found = await listFolder(
    folderOf({ 'a.json': 'a', onnx: { 'm.onnx': 'm', deep: { b: 'b' } } }),
    never,
  )
  expect(found.map(({ path, file }) => [path, file.size])).toEqual([
    ['a.json', 1],
    ['onnx/m.onnx', 1],
    ['onnx/deep/b', 1],
  ])
})

test.each<[string, Tree]>([
  ['files', many(10_001, () => 'x')],
  ['files below', { one: many(6000, () => 'x'), two: many(6000, () => 'x') }],
  ['folders with nothing in them', { one: many(10_001, () => ({})) }],
])('a folder that cannot be a model is refused, not read in part: %s', async (_, tree) => {
  await expect(listFolder(folderOf(tree), never)).rejects.toMatchObject({
    kind: 'invalid_request',
    code: 'too_many_files',
    param: 'files',
  })
})

test('whoever gives up is not kept', async () => {
  await expect(listFolder(folderOf({ a: 'a' }), AbortSignal.abort())).rejects.toMatchObject({
    name: 'AbortError',
  })
})
