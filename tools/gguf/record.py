"""Records greedy answers of a GGUF file for tests: transformers reads the same file and computes in 32 bits.

    python record.py --gguf FILE [PART ...] --out RECORD.json

Several files are the parts of one. Each answer has its tokens as text (as bytes where they are no text), and
for each of them the distance of the two best logits. The last margin of a whole answer is that of its end.
"""

import argparse
import hashlib
import json
import tempfile
from pathlib import Path

import transformers
from make import PROMPTS, judge, list_prompts, read_model, write_answer

ANSWER_TOKENS = 48
LONG_ANSWER_TOKENS = 16
LONG_PROMPT_TOKENS = 2_000
LONG_QUESTION = "Summarize these notes in one sentence:\n\n"


class Recorder:
    def __init__(self, path):
        self.model = read_model(path)
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        # The bytes of the characters in which byte-level tokens are written.
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [byte for byte in range(256) if byte not in printable]
        self.byte_of = {chr(byte): byte for byte in printable}
        self.byte_of.update({chr(256 + at): byte for at, byte in enumerate(others)})

    def encode(self, prompt):
        messages = [{"role": "user", "content": prompt}]
        text = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        return self.tokenizer.encode(text, add_special_tokens=False)

    def to_text(self, token):
        """Returns the text of a token, or its bytes if it is a part of a character."""
        given = bytes(self.byte_of[character] for character in self.tokenizer.convert_ids_to_tokens(token))
        try:
            return given.decode()
        except UnicodeDecodeError:
            return list(given)

    def record(self, prompt, count):
        tokens = self.encode(prompt)
        judged = judge(self.model, tokens, write_answer(self.model, tokens, count))
        written = judged["answer"]
        # The tokenizer of a GGUF file can have another one.
        ends = written[-1] == self.model.generation_config.eos_token_id
        return {
            "prompt": prompt,
            "promptTokens": len(tokens),
            "tokens": [self.to_text(token) for token in (written[:-1] if ends else written)],
            "isWhole": ends,
            "margins": judged["margins"],
        }

    def long_prompt(self):
        """Returns a prompt of as many tokens as one may have at most. Its text is that of the other prompts."""
        words = " ".join(list_prompts()).split()
        low, high = 0, len(words)
        while low < high:
            middle = (low + high + 1) // 2
            fits = len(self.encode(LONG_QUESTION + " ".join(words[:middle]))) <= LONG_PROMPT_TOKENS
            low, high = (middle, high) if fits else (low, middle - 1)
        return LONG_QUESTION + " ".join(words[:low])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf", type=Path, nargs="+", required=True, help="a GGUF file, or its parts")
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    given = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    content = b"".join(path.read_bytes() for path in given.gguf)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.gguf")
        path.write_bytes(content)
        recorder = Recorder(path)
        answers = [recorder.record(prompt, ANSWER_TOKENS) for prompt in list_prompts()[:PROMPTS]]
        long = recorder.record(recorder.long_prompt(), LONG_ANSWER_TOKENS)
    about = {"transformers": transformers.__version__, "sha256": hashlib.sha256(content).hexdigest()}
    record = {**about, "answers": answers, "long": long}
    given.out.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    print(f"{sum(len(each['margins']) for each in answers)} tokens; {long['promptTokens']} of the long prompt")


if __name__ == "__main__":
    main()
