type Golden = [written: string, text: string, calls: [name: string, value: unknown][]]

/** By format: texts as the families' documents show them and models write them, and what they mean. */
export const GOLDEN: Readonly<Record<string, readonly Golden[]>> = {
  hermes: [
    [
      '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>',
      '',
      [['get_weather', { city: 'Paris' }]],
    ],
    [
      'Let me look.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Zürich 🏔", "days": 2}}\n</tool_call>\n<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>\n',
      'Let me look.',
      [
        ['get_weather', { city: 'Zürich 🏔', days: 2 }],
        ['get_time', {}],
      ],
    ],
    // In another order, on one line, with the arguments as a string, or with none.
    [
      '<tool_call>{"arguments": {"city": "Oslo"}, "name": "get_weather"}</tool_call>',
      '',
      [['get_weather', { city: 'Oslo' }]],
    ],
    [
      '<tool_call>{"name":"get_weather","arguments":"{\\"city\\": \\"Oslo\\"}"}</tool_call>',
      '',
      [['get_weather', { city: 'Oslo' }]],
    ],
    ['<tool_call>\n{"name": "get_time"}\n</tool_call>', '', [['get_time', {}]]],
    [
      '<tool_call>\n{"id": 7, "name": "get_time", "arguments": {}, "why": [1, {"a": "}"}]}\n</tool_call>',
      '',
      [['get_time', {}]],
    ],
    // A brace too few.
    [
      '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}\n</tool_call>',
      '',
      [['get_weather', { city: 'Rome' }]],
    ],
    // Marks and quotes within arguments are arguments.
    [
      '<tool_call>\n{"name": "get_weather", "arguments": {"city": "</tool_call> \\"}{\\u00e9\\n"}}\n</tool_call>',
      '',
      [['get_weather', { city: '</tool_call> "}{é\n' }]],
    ],
  ],
  xml: [
    [
      'I see.\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nNew "York"\nCity\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>',
      'I see.',
      [['get_weather', { city: 'New "York"\nCity', days: 3 }]],
    ],
    [
      '<tool_call>\n<function=set>\n<parameter=on>\nTrue\n</parameter>\n<parameter=names>\n["a", "b"]\n</parameter>\n<parameter=extra>\n{"x": null}\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=get_time>\n</function>\n</tool_call>',
      '',
      [
        ['set', { on: true, names: ['a', 'b'], extra: { x: null } }],
        ['get_time', {}],
      ],
    ],
    [
      '<tool_call>\n<function=get_weather>\n<parameter=city>\n12\n</parameter>\n</function>\n</tool_call>',
      '',
      [['get_weather', { city: '12' }]],
    ],
    [
      '<tool_call>\n<function=set>\n<parameter=level>\n-1.5E+400\n</parameter>\n</function>\n</tool_call>',
      '',
      [['set', { level: -Infinity }]],
    ],
    ['<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>', '', [['get_time', {}]]],
  ],
  llama: [
    [
      '{"name": "get_weather", "parameters": {"city": "Paris"}}',
      '',
      [['get_weather', { city: 'Paris' }]],
    ],
    [
      '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris"}}',
      '',
      [['get_weather', { city: 'Paris' }]],
    ],
    [
      '{"name": "get_weather", "parameters": {"city": "Paris"}}; {"name": "get_time", "parameters": {}}',
      '',
      [
        ['get_weather', { city: 'Paris' }],
        ['get_time', {}],
      ],
    ],
    ['\n{"type": "function", "name": "get_time", "parameters": {}}', '', [['get_time', {}]]],
    [
      'Use {"name": "get_time", "parameters": {}} there.',
      'Use {"name": "get_time", "parameters": {}} there.',
      [],
    ],
    ['{"name": "Ada", "age": 36}', '{"name": "Ada", "age": 36}', []],
    ['{"city": "Paris"}', '{"city": "Paris"}', []],
  ],
  mistral: [
    [
      '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}}]',
      '',
      [['get_weather', { city: 'Paris' }]],
    ],
    [
      '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Paris"}, "id": "abcdefghi"}, {"name": "get_time", "arguments": {}}]',
      '',
      [
        ['get_weather', { city: 'Paris' }],
        ['get_time', {}],
      ],
    ],
  ],
  'mistral-args': [
    ['[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}', '', [['get_weather', { city: 'Paris' }]]],
    [
      'One moment. [TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}[TOOL_CALLS]get_time[ARGS]{}',
      'One moment.',
      [
        ['get_weather', { city: 'Paris' }],
        ['get_time', {}],
      ],
    ],
    [
      '[TOOL_CALLS]get_weather[CALL_ID]123456789[ARGS]{"city": "Paris"}',
      '',
      [['get_weather', { city: 'Paris' }]],
    ],
    ['[TOOL_CALLS]get_time{}', '', [['get_time', {}]]],
  ],
  lfm: [
    [
      '<|tool_call_start|>[get_weather(city="Paris")]<|tool_call_end|>',
      '',
      [['get_weather', { city: 'Paris' }]],
    ],
    [
      "Checking.<|tool_call_start|>[get_weather(city='It\\'s \"here\"', days=2), get_time()]<|tool_call_end|>",
      'Checking.',
      [
        ['get_weather', { city: 'It\'s "here"', days: 2 }],
        ['get_time', {}],
      ],
    ],
    [
      '<|tool_call_start|>[set(on=True, level=-1.5e3, names=["a", \'b\'], extra={"x": None, "y": [False]})]<|tool_call_end|>',
      '',
      [['set', { on: true, level: -1500, names: ['a', 'b'], extra: { x: null, y: [false] } }]],
    ],
    [
      '<|tool_call_start|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]<|tool_call_end|>',
      '',
      [['get_weather', { city: 'Paris' }]],
    ],
  ],
  granite: [
    [
      '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]',
      '',
      [['get_weather', { city: 'Paris' }]],
    ],
    [
      '<|tool_call|>[{"arguments": {"city": "Paris"}, "name": "get_weather"}, {"name": "get_time", "arguments": {}}]',
      '',
      [
        ['get_weather', { city: 'Paris' }],
        ['get_time', {}],
      ],
    ],
  ],
}
