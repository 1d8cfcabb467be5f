"""What the model makes of a few texts, for the tests to compare with."""
import json
from pathlib import Path

TEXTS = [
    '', 'dog', 'Where can I change my password?', 'ÀÉÎ naïve CAFÉ', '😀', 'Great 😀👍🏽!', '日本語',
    'line one\nline two\t\u0000\u200b end', '[START] [UNKNOWN]', 'x' * 150, 'e-mail@example.org', '1,234.5 €',
    'The cat chased the mouse. ' * 30,
]


def write(file: Path, tokenizer, embed) -> None:
    cases = [{'text': text, 'ids': tokenizer.encode(text).ids, 'vector': [round(float(x), 5) for x in embed([text])[0]]}
             for text in TEXTS]
    file.write_text(json.dumps(cases, ensure_ascii=False, separators=(',', ':')) + '\n')
    print(f'{file.name}: {file.stat().st_size} bytes')
