#!/usr/bin/env python3
"""Trains a small neural network to read digits; a job to submit, stop and resume.

Owns: the task (5 x 7 digits, drawn into 6 x 8 pictures with shifts, faint strokes and noise), a perceptron with one
hidden layer, and its checkpoints. Needs nothing but Python's standard library.
Invariants: the same seed gives the same weights; a resumed run ends with exactly the weights of an uninterrupted one; a
checkpoint is either whole or skipped.
"""

import argparse
import hashlib
import json
import math
import os
import random
import re
import signal
import sys
import time
from operator import mul

GLYPHS = (
    "01110 10001 10011 10101 11001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00010 00100 01000 11111",
    "11111 00010 00100 00010 00001 10001 01110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00010 01100",
)
STROKES = [
    [(x, y) for y, row in enumerate(glyph.split()) for x, dot in enumerate(row) if dot == "1"] for glyph in GLYPHS
]
CLASSES = len(GLYPHS)
WIDTH, HEIGHT = 6, 8
HIDDEN = 24
BATCH = 16
LEARNING_RATE = 0.05
MOMENTUM = 0.9
# The share of held-out digits that a default run reads correctly at least; guessing gives 0.1.
ACCURACY_MIN = 0.92
HELD_OUT = 500
CHECKPOINT_FORMAT = 1
CHECKPOINTS_KEPT = 3
CHECKPOINT_NAME = re.compile(r"step-(\d{8})\.json")
# What a shell reports for a process that SIGTERM ended: 128 + 15.
EXIT_TERMINATED = 143


class BadCheckpoint(Exception):
    """A checkpoint that cannot be resumed from, with the reason."""


def draw(rng):
    """One picture (a list of WIDTH * HEIGHT brightnesses) and the digit on it."""
    digit = rng.randrange(CLASSES)
    picture = [rng.gauss(0.0, 0.25) for _ in range(WIDTH * HEIGHT)]
    left, top = rng.randrange(WIDTH - 4), rng.randrange(HEIGHT - 6)
    for x, y in STROKES[digit]:
        if rng.random() > 0.06:
            picture[(top + y) * WIDTH + left + x] += rng.uniform(0.7, 1.0)
    return picture, digit


def layer(rng, inputs, outputs):
    """Random weights, one row per output; the last entry of a row is its bias."""
    spread = 1.0 / math.sqrt(inputs)
    return [[rng.gauss(0.0, spread) for _ in range(inputs)] + [0.0] for _ in range(outputs)]


def zeros(layers):
    return [[[0.0] * len(row) for row in rows] for rows in layers]


def forward(layers, picture):
    """What the hidden layer and the output say of a picture: activations (with 1.0 for the bias) and probabilities."""
    inputs = picture + [1.0]
    hidden = [math.tanh(sum(map(mul, row, inputs))) for row in layers[0]] + [1.0]
    scores = [sum(map(mul, row, hidden)) for row in layers[1]]
    highest = max(scores)
    shares = [math.exp(score - highest) for score in scores]
    total = sum(shares)
    return inputs, hidden, [share / total for share in shares]


def add_scaled(row, scale, values):
    return [cell + scale * value for cell, value in zip(row, values)]


def backward(layers, gradients, picture, digit):
    """Adds one example's gradients to `gradients` and answers its cross-entropy loss."""
    inputs, hidden, shares = forward(layers, picture)
    blame = [share - (1.0 if index == digit else 0.0) for index, share in enumerate(shares)]
    for index, wrong in enumerate(blame):
        gradients[1][index] = add_scaled(gradients[1][index], wrong, hidden)
    for index in range(HIDDEN):
        passed_back = sum(wrong * row[index] for wrong, row in zip(blame, layers[1]))
        slope = passed_back * (1.0 - hidden[index] * hidden[index])
        gradients[0][index] = add_scaled(gradients[0][index], slope, inputs)
    return -math.log(max(shares[digit], 1e-12))


class Training:
    """The whole state of a run: everything that decides what the next step does."""

    def __init__(self, seed):
        self.seed = seed
        self.rng = random.Random(f"train/{seed}")
        self.layers = [layer(self.rng, WIDTH * HEIGHT, HIDDEN), layer(self.rng, HIDDEN, CLASSES)]
        self.velocity = zeros(self.layers)
        self.step = 0
        self.loss = math.log(CLASSES)
        held_out = random.Random(f"held-out/{seed}")
        self.held_out = [draw(held_out) for _ in range(HELD_OUT)]

    def advance(self):
        """One step of gradient descent with momentum over a fresh batch."""
        gradients = zeros(self.layers)
        loss = sum(backward(self.layers, gradients, *draw(self.rng)) for _ in range(BATCH)) / BATCH
        for rows, moving, slopes in zip(self.layers, self.velocity, gradients):
            for index, slope in enumerate(slopes):
                moving[index] = [MOMENTUM * v - LEARNING_RATE / BATCH * s for v, s in zip(moving[index], slope)]
                rows[index] = add_scaled(rows[index], 1.0, moving[index])
        self.step += 1
        # A moving average: the loss of a single batch jumps about.
        self.loss += (loss - self.loss) * 0.05

    def accuracy(self):
        """The share of the held-out pictures that are read correctly."""
        right = 0
        for picture, digit in self.held_out:
            shares = forward(self.layers, picture)[2]
            right += shares.index(max(shares)) == digit
        return right / HELD_OUT

    def dump(self):
        version, words, gauss = self.rng.getstate()
        return {
            "format": CHECKPOINT_FORMAT,
            "seed": self.seed,
            "step": self.step,
            "loss": self.loss,
            "layers": self.layers,
            "velocity": self.velocity,
            "rng": [version, list(words), gauss],
        }

    def restore(self, state):
        if state["format"] != CHECKPOINT_FORMAT:
            raise BadCheckpoint(f"its format is {state['format']}, this program reads {CHECKPOINT_FORMAT}")
        if state["seed"] != self.seed:
            raise BadCheckpoint(f"it was made with seed {state['seed']}, this run has {self.seed}")
        version, words, gauss = state["rng"]
        self.rng.setstate((version, tuple(words), gauss))
        self.step, self.loss = state["step"], state["loss"]
        self.layers, self.velocity = state["layers"], state["velocity"]


def digest(state):
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def write_atomically(path, value):
    """Whoever reads `path` sees the old content or the new one, even after a power cut."""
    temporary = f"{path}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def checkpoints(folder):
    """The names of the checkpoints in a folder, newest first."""
    return sorted(filter(CHECKPOINT_NAME.fullmatch, os.listdir(folder)), reverse=True)


def save(training, folder):
    state, written = training.dump(), f"step-{training.step:08d}.json"
    write_atomically(os.path.join(folder, written), {"sha256": digest(state), "state": state})
    # Only what is older than this one is cleared away: a torn file with a higher number must not crowd it out.
    for name in [name for name in checkpoints(folder) if name <= written][CHECKPOINTS_KEPT:]:
        os.remove(os.path.join(folder, name))


def read_checkpoint(path):
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        state, written = content["state"], content["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadCheckpoint(f"it is torn or no checkpoint ({type(error).__name__})") from error
    if digest(state) != written:
        raise BadCheckpoint("its digest does not match its content")
    return state


def resume(training, folder):
    """Continues from the newest checkpoint that is whole; says which were skipped and why."""
    for name in checkpoints(folder):
        try:
            training.restore(read_checkpoint(os.path.join(folder, name)))
        except BadCheckpoint as reason:
            say(f"skipped {name}: {reason}")
        else:
            say(f"resumed from {name}")
            return


def say(line):
    # Flushed line by line, so that whoever follows the output sees it as it happens.
    print(line, flush=True)


def progress(training, started):
    accuracy = training.accuracy()
    seconds = time.monotonic() - started
    line = f"step {training.step} loss {training.loss:.4f} accuracy {accuracy:.3f} time_s {seconds:.2f}"
    return accuracy, seconds, line


def whole(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {number}")
    return number


def options(arguments):
    parser = argparse.ArgumentParser(description="Trains a small neural network to read digits.")
    parser.add_argument("--steps", type=whole, default=1500, help="how many steps in all (default %(default)s)")
    parser.add_argument("--every", type=whole, default=100, help="steps between checkpoints (default %(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="decides weights and pictures (default %(default)s)")
    parser.add_argument(
        "--checkpoint-dir",
        default=os.environ.get("KASHI_CHECKPOINT_DIR") or os.environ.get("KASHI_OUTPUT_DIR") or "checkpoints",
        help="where checkpoints and result.json go (default $KASHI_CHECKPOINT_DIR, $KASHI_OUTPUT_DIR or ./checkpoints)",
    )
    return parser.parse_args(arguments)


def main(arguments=None):
    # The signal only sets a flag: a step is finished before the checkpoint is written.
    stopping = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.append(number))
    asked = options(arguments)
    os.makedirs(asked.checkpoint_dir, exist_ok=True)
    started = time.monotonic()
    training = Training(asked.seed)
    weights = sum(len(row) for rows in training.layers for row in rows)
    say(f"start seed {asked.seed} steps {asked.steps} weights {weights} held_out {HELD_OUT}")
    resume(training, asked.checkpoint_dir)
    while training.step < asked.steps and not stopping:
        training.advance()
        if training.step % asked.every == 0:
            save(training, asked.checkpoint_dir)
            say(progress(training, started)[2])
    save(training, asked.checkpoint_dir)
    if stopping and training.step < asked.steps:
        say(f"terminated at step {training.step}, a checkpoint is written")
        return EXIT_TERMINATED
    accuracy, seconds, line = progress(training, started)
    result = {
        "seed": asked.seed,
        "steps": training.step,
        "loss": training.loss,
        "accuracy": accuracy,
        "accuracy_min": ACCURACY_MIN,
        "learned": accuracy >= ACCURACY_MIN,
        "time_s": round(seconds, 3),
        "weights_sha256": digest(training.layers),
    }
    write_atomically(os.path.join(asked.checkpoint_dir, "result.json"), result)
    say(f"final {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
