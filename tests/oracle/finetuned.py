#!/usr/bin/env python3
"""Real Keras evaluates what examples/18_finetune leaves: finetuned.py DIRECTORY

Needs Keras 3.15 with TensorFlow (CPU). Prints the share of the example's 500 test numbers that old.keras says
in the old order, which must be the example's own "merged into float weights" within 2 of 500."""
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy

WORDS = ["", "<", ">"] + ("one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
                          "fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty "
                          "seventy eighty ninety hundred thousand and").split()
TOKEN = {word: token for token, word in enumerate(WORDS)}
TENS = WORDS[22:30]
NUMBERS, TEST, FIGURES, LENGTH = 9999, 500, 4, 12


def below_100(number):
    if number < 20:
        return [WORDS[number + 2]] if number else []
    tens = TENS[number // 10 - 2]
    return [WORDS[number % 10 + 2], "and", tens] if number % 10 else [tens]


def say(number):
    """The old order: units before tens."""
    words = []
    if number >= 1000:
        words += [WORDS[number // 1000 + 2], "thousand"]
    if number % 1000 >= 100:
        words += [WORDS[number // 100 % 10 + 2], "hundred"]
    return [TOKEN[word] for word in words + below_100(number % 100)]


def lines():
    line, following = numpy.zeros((2, TEST, LENGTH), "int32")
    for i in range(TEST):
        number = i * 7001 % NUMBERS + 1
        figures = [len(WORDS) + int(figure) for figure in str(number)]
        words = say(number)
        line[i, FIGURES - len(figures):FIGURES] = figures
        line[i, FIGURES] = TOKEN["<"]
        line[i, FIGURES + 1:FIGURES + 1 + len(words)] = words[:LENGTH - FIGURES - 1]
        following[i, FIGURES:FIGURES + len(words) + 1] = words + [TOKEN[">"]]
    return line, following


def main():
    model = keras.models.load_model(os.path.join(sys.argv[1], "old.keras"))
    line, following = lines()
    words = model.predict(line, batch_size=TEST, verbose=0).argmax(-1)
    share = (words[:, FIGURES:] == following[:, FIGURES:]).all(1).mean()
    print(f"old order {share:.3f} in Keras {keras.__version__}")


main()
