"""The tokenizer: WordPiece over lower-case words without accents, each emoji a token of its own."""
import json
from pathlib import Path

from tokenizers import Regex, Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer, Sequence, Split
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer

# Before every text, so that there is always a token to read.
START, UNKNOWN = '[START]', '[UNKNOWN]'


def train(texts: list[str], signs: list[str], size: int) -> Tokenizer:
    tokenizer = Tokenizer(WordPiece(unk_token=UNKNOWN, max_input_chars_per_word=100))
    tokenizer.normalizer = BertNormalizer(clean_text=True, handle_chinese_chars=True,
                                          strip_accents=True, lowercase=True)
    tokenizer.pre_tokenizer = Sequence([BertPreTokenizer(), Split(Regex(r'\p{So}|\p{Sk}'), 'isolated')])
    letters = [chr(code) for code in range(33, 127)]
    trainer = WordPieceTrainer(vocab_size=size - len(signs), special_tokens=[START, UNKNOWN],
                               initial_alphabet=letters, limit_alphabet=160,
                               continuing_subword_prefix='##', show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return complete(tokenizer, signs)


def complete(tokenizer: Tokenizer, signs: list[str]) -> Tokenizer:
    """With the emoji behind the learnt pieces, and no text that is read as a special token."""
    file = json.loads(tokenizer.to_str())
    vocabulary = file['model']['vocab']
    for sign in signs:
        vocabulary.setdefault(sign, len(vocabulary))
    file['added_tokens'] = []
    whole = Tokenizer.from_str(json.dumps(file))
    whole.post_processor = TemplateProcessing(single=f'{START} $A', special_tokens=[
        (START, vocabulary[START])])
    return whole


def save(tokenizer: Tokenizer, path: Path) -> None:
    path.write_text(json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(',', ':')) + '\n')
