/** Licenses that packages do not carry themselves, looked up in the repositories of their authors. */

/** Names of the texts beside this file. */
export type Spdx = 'MIT' | 'BSD-2-Clause' | 'BSD-3-Clause' | 'Apache-2.0' | 'MPL-2.0'

export interface Terms {
  license: Spdx
  /** Lines that name the holders of the copyright. */
  copyright: string
}

export interface Part extends Terms {
  name: string
  /** Where its source code is. */
  url: string
}

/** Terms of packages that come without a license file. */
export const TERMS: Readonly<Record<string, Terms>> = {
  '@cfworker/json-schema': { license: 'MIT', copyright: 'Copyright (c) 2020 Jeremy Danyow' },
  'onnxruntime-web': {
    license: 'MIT',
    copyright: 'Copyright (c) 2018 - present Microsoft Corporation',
  },
}

/** What a compiler links into every wasm file. */
const EMSCRIPTEN: readonly Part[] = [
  {
    name: 'Emscripten',
    license: 'MIT',
    copyright: 'Copyright (c) 2010-2014 Emscripten authors, see AUTHORS file.',
    url: 'https://github.com/emscripten-core/emscripten',
  },
  {
    name: 'musl',
    license: 'MIT',
    copyright: 'Copyright © 2005-2020 Rich Felker, et al.',
    url: 'https://musl.libc.org',
  },
]

const DLPACK: Part = {
  name: 'DLPack',
  license: 'Apache-2.0',
  copyright: 'Copyright (c) 2017 by Contributors',
  url: 'https://github.com/dmlc/dlpack',
}

const TVM: Part = {
  name: 'Apache TVM',
  license: 'Apache-2.0',
  copyright:
    'Apache TVM\nCopyright 2019-2023 The Apache Software Foundation\n\n' +
    'This product includes software developed at\nThe Apache Software Foundation (http://www.apache.org/).',
  url: 'https://github.com/apache/tvm',
}

/** Works of others that the files of a package contain. Look at this list when the package is updated. */
export const PARTS: Readonly<Record<string, readonly Part[]>> = {
  '@cfworker/json-schema': [
    {
      name: 'Punycode.js',
      license: 'MIT',
      copyright: 'Copyright Mathias Bynens <https://mathiasbynens.be/>',
      url: 'https://github.com/mathiasbynens/punycode.js',
    },
    {
      name: 'Ajv',
      license: 'MIT',
      copyright: 'Copyright (c) 2015-2021 Evgeny Poberezkin',
      url: 'https://github.com/ajv-validator/ajv',
    },
  ],
  '@mlc-ai/web-llm': [
    TVM,
    DLPACK,
    {
      name: 'XGrammar',
      license: 'Apache-2.0',
      copyright: 'XGrammar\n\nCopyright (c) 2024 by XGrammar Contributors',
      url: 'https://github.com/mlc-ai/xgrammar',
    },
    {
      name: 'PicoJSON',
      license: 'BSD-2-Clause',
      copyright:
        'Copyright 2009-2010 Cybozu Labs, Inc.\nCopyright 2011-2014 Kazuho Oku\nAll rights reserved.',
      url: 'https://github.com/kazuho/picojson',
    },
    {
      name: 'loglevel',
      license: 'MIT',
      copyright: 'Copyright (c) 2013 Tim Perry',
      url: 'https://github.com/pimterry/loglevel',
    },
    ...EMSCRIPTEN,
  ],
  // The wasm files that `inorigin init` copies contain these.
  'onnxruntime-web': [
    {
      name: 'ONNX',
      license: 'Apache-2.0',
      copyright: 'Copyright (c) ONNX Project Contributors',
      url: 'https://github.com/onnx/onnx',
    },
    {
      name: 'Protocol Buffers',
      license: 'BSD-3-Clause',
      copyright: 'Copyright 2008 Google Inc.  All rights reserved.',
      url: 'https://github.com/protocolbuffers/protobuf',
    },
    {
      name: 'Abseil',
      license: 'Apache-2.0',
      copyright: 'Copyright 2017 The Abseil Authors.',
      url: 'https://github.com/abseil/abseil-cpp',
    },
    {
      name: 'FlatBuffers',
      license: 'Apache-2.0',
      copyright: 'Copyright 2014 Google Inc. All rights reserved.',
      url: 'https://github.com/google/flatbuffers',
    },
    {
      name: 'Eigen',
      license: 'MPL-2.0',
      copyright: 'Copyright (C) The Eigen Authors.',
      url: 'https://gitlab.com/libeigen/eigen',
    },
    {
      name: 'RE2',
      license: 'BSD-3-Clause',
      copyright: 'Copyright (c) 2009 The RE2 Authors. All rights reserved.',
      url: 'https://github.com/google/re2',
    },
    {
      name: 'JSON for Modern C++',
      license: 'MIT',
      copyright: 'Copyright (c) 2013-2022 Niels Lohmann',
      url: 'https://github.com/nlohmann/json',
    },
    {
      name: 'SafeInt',
      license: 'MIT',
      copyright: 'Copyright (c) 2018 Microsoft',
      url: 'https://github.com/dcleblanc/SafeInt',
    },
    {
      name: 'Guidelines Support Library',
      license: 'MIT',
      copyright: 'Copyright (c) 2015 Microsoft Corporation. All rights reserved.',
      url: 'https://github.com/microsoft/GSL',
    },
    {
      name: 'date',
      license: 'MIT',
      copyright:
        'Copyright (c) 2015, 2016, 2017 Howard Hinnant\nCopyright (c) 2016 Adrian Colomitchi\n' +
        'Copyright (c) 2017 Florian Dang\nCopyright (c) 2017 Paul Thompson\n' +
        'Copyright (c) 2018, 2019 Tomasz Kamiński\nCopyright (c) 2019 Jiangang Zhuang',
      url: 'https://github.com/HowardHinnant/date',
    },
    {
      name: 'Dawn',
      license: 'BSD-3-Clause',
      copyright: 'Copyright 2017-2023 The Dawn & Tint Authors',
      url: 'https://dawn.googlesource.com/dawn',
    },
    ...EMSCRIPTEN,
  ],
}
