"""Tokenizes text files with a tokenizer.json: tokenize.py TOKENIZER OUTPUT TEXT... (run by nd-data).

Writes uint16 or uint32 tokens, whichever holds the vocabulary, and prints "BYTES VOCABULARY COUNT".
"""

import sys

try:
    import numpy
    from tokenizers import Tokenizer
except ImportError as error:
    sys.exit(f"Python lacks a package ({error}); run this after `. scripts/env.sh`")

tokenizer = Tokenizer.from_file(sys.argv[1])
vocabulary = tokenizer.get_vocab_size(with_added_tokens=True)
kind = numpy.uint16 if vocabulary <= 1 << 16 else numpy.uint32
count = 0
with open(sys.argv[2], "wb") as output:
    for path in sys.argv[3:]:
        with open(path, encoding="utf-8", errors="replace", newline="") as text:
            # By whole lines of about a megabyte: a tokenizer does not join tokens over the end of a line's text.
            while lines := text.readlines(1 << 20):
                ids = tokenizer.encode("".join(lines), add_special_tokens=False).ids
                numpy.asarray(ids, kind).tofile(output)
                count += len(ids)
print(numpy.dtype(kind).itemsize, vocabulary, count)
