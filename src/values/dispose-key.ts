/**
 * Key of the method that `using` calls at the end of a block. Where a browser has no
 * `Symbol.dispose`, compilers of `using` look for this registered symbol
 * (https://babeljs.io/docs/babel-plugin-transform-explicit-resource-management).
 */
export const disposeKey: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for('Symbol.dispose')
