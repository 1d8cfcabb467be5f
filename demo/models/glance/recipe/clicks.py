"""The tool `click`, whose arguments the model reads from the picture."""
WORDS = [('click', 'Clicks a place in the picture. x and y are percent of its width and height.'), ('click', 'Click at x, y in percent'), ('click_at', 'Clicks on the screen. x and y are percent.'),
         ('tap', 'Taps the screen at x and y, in percent of its width and height.'), ('press', 'Presses the mouse at x, y (percent).'),
         ('click', 'Click on the picture'), ('click', 'Clicks at a position on the screen'), ('click', ''), ('mouse_click', 'Clicks the mouse'), ('tap', 'Tap the screen')]


def click_tool(d) -> dict:
    name, description = d.one(WORDS)
    percent = {'type': 'integer' if d.chance(0.7) else 'number', **({'minimum': 0, 'maximum': 100} if d.chance(0.3) else {})}
    if d.chance(0.25):
        percent['description'] = d.one(['percent', 'percent of the width or height', 'from 0 to 100'])
    parameters = {'type': 'object', 'properties': {'x': percent, 'y': percent}, 'required': ['x', 'y']}
    return {'type': 'function', 'function': {'name': name, **({'description': description} if description else {}), 'parameters': parameters}}


def call(tool: dict, place: tuple) -> dict:
    """Returns the assistant's message that calls the tool."""
    function = {'name': tool['function']['name'], 'arguments': {'x': place[0], 'y': place[1]}}
    return {'role': 'assistant', 'content': None, 'tool_calls': [{'type': 'function', 'function': function}]}
