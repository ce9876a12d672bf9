"""What a user of the example counts on: it learns, it resumes exactly, and it survives torn files and SIGTERM."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import train

PROGRAM = train.__file__
SECONDS_MAX = 120


def run(folder, *arguments):
    """Runs in this process; answers the exit code, the lines and, once there is one, the result."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = train.main(["--checkpoint-dir", folder, *map(str, arguments)])
    path = os.path.join(folder, "result.json")
    result = None
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
    return code, printed.getvalue().splitlines(), result


def numbers(lines, word):
    return [float(re.search(rf"\b{word} (\S+)", line).group(1)) for line in lines if line.startswith("step ")]


class InAFolder(unittest.TestCase):
    def setUp(self):
        self.folders = contextlib.ExitStack()
        self.addCleanup(self.folders.close)
        # A run in this process leaves its handler behind; the next one and the test runner should not meet it.
        self.addCleanup(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))
        self.folder = self.new_folder()

    def new_folder(self):
        return self.folders.enter_context(tempfile.TemporaryDirectory())

    def in_folder(self, name):
        return os.path.join(self.folder, name)

    def uninterrupted(self, steps):
        return run(self.new_folder(), "--steps", steps)[2]["weights_sha256"]


class Learns(InAFolder):
    def test_a_default_run_reads_digits_it_has_not_seen(self):
        code, lines, result = run(self.folder)
        self.assertEqual(code, 0)
        loss, accuracy = numbers(lines, "loss"), numbers(lines, "accuracy")
        self.assertLess(loss[-1], loss[0] / 3)
        self.assertGreater(accuracy[-1], accuracy[0])
        self.assertGreaterEqual(result["accuracy"], train.ACCURACY_MIN)
        self.assertTrue(result["learned"])
        self.assertTrue(lines[-1].startswith("final step 1500 "), lines[-1])

    def test_before_training_it_guesses(self):
        self.assertLess(train.Training(7).accuracy(), 0.3)

    def test_a_seed_decides_the_weights(self):
        one, same, other = (run(self.new_folder(), "--steps", 3, "--seed", seed)[2] for seed in (1, 1, 2))
        self.assertEqual(one["weights_sha256"], same["weights_sha256"])
        self.assertNotEqual(one["weights_sha256"], other["weights_sha256"])


class Resumes(InAFolder):
    def test_with_exactly_the_weights_of_an_uninterrupted_run(self):
        run(self.folder, "--steps", 13)
        _, lines, result = run(self.folder, "--steps", 40)
        self.assertIn("resumed from step-00000013.json", lines)
        self.assertEqual(result["weights_sha256"], self.uninterrupted(40))

    def test_a_finished_run_only_says_its_result_again(self):
        first = run(self.folder, "--steps", 10)[2]
        code, lines, again = run(self.folder, "--steps", 10)
        self.assertEqual((code, again["weights_sha256"]), (0, first["weights_sha256"]))
        self.assertFalse([line for line in lines if line.startswith("step ")])

    def test_keeps_only_the_newest_checkpoints(self):
        run(self.folder, "--steps", 6, "--every", 1)
        kept = [f"step-0000000{step}.json" for step in (6, 5, 4)]
        self.assertEqual(train.checkpoints(self.folder), kept)
        self.assertEqual(sorted(os.listdir(self.folder)), ["result.json", *sorted(kept)])

    def test_skips_what_is_torn_or_changed(self):
        run(self.folder, "--steps", 20, "--every", 10)
        newest, older = train.checkpoints(self.folder)
        with open(self.in_folder(newest), "r+", encoding="utf-8") as file:
            file.truncate(1000)
        with open(self.in_folder(older), encoding="utf-8") as file:
            changed = json.load(file)
        changed["state"]["layers"][0][0][0] += 1.0
        for name, content in (("step-00000015.json", changed), ("step-00000014.json", [])):
            with open(self.in_folder(name), "w", encoding="utf-8") as file:
                json.dump(content, file)
        _, lines, result = run(self.folder, "--steps", 30)
        expected = [
            "skipped step-00000020.json: it is torn or no checkpoint (JSONDecodeError)",
            "skipped step-00000015.json: its digest does not match its content",
            "skipped step-00000014.json: it is torn or no checkpoint (TypeError)",
            "resumed from step-00000010.json",
        ]
        self.assertEqual(lines[1:5], expected)
        self.assertEqual(result["weights_sha256"], self.uninterrupted(30))

    def test_newer_torn_files_do_not_crowd_out_new_checkpoints(self):
        for step in (97, 98, 99):
            with open(self.in_folder(f"step-000000{step}.json"), "w", encoding="utf-8"):
                pass
        run(self.folder, "--steps", 2)
        self.assertIn("step-00000002.json", train.checkpoints(self.folder))

    def test_a_checkpoint_of_another_seed_is_skipped(self):
        run(self.folder, "--steps", 5, "--seed", 1)
        _, lines, _ = run(self.folder, "--steps", 2, "--seed", 2)
        self.assertIn("skipped step-00000005.json: it was made with seed 1, this run has 2", lines)


class Starts(InAFolder):
    def test_in_the_jobs_own_checkpoint_folder_before_any_other(self):
        folders = {"KASHI_CHECKPOINT_DIR": self.in_folder("kept"), "KASHI_OUTPUT_DIR": self.in_folder("results")}
        command = [sys.executable, PROGRAM, "--steps", "2"]
        for said in ("start seed 7", "resumed from step-00000002.json"):
            out = subprocess.run(command, env={**os.environ, **folders}, stdout=subprocess.PIPE, text=True, check=True)
            self.assertTrue(any(line.startswith(said) for line in out.stdout.splitlines()), out.stdout)
        self.assertFalse(os.path.exists(folders["KASHI_OUTPUT_DIR"]))


class Ends(InAFolder):
    def test_on_sigterm_with_a_checkpoint_that_resumes_exactly(self):
        environment = {**os.environ, "KASHI_CHECKPOINT_DIR": "", "KASHI_OUTPUT_DIR": self.folder}
        command = [sys.executable, PROGRAM, "--steps", "100000", "--every", "5"]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            # A program that ignores the signal is killed, so that the test fails instead of hanging.
            watchdog = threading.Timer(SECONDS_MAX, process.kill)
            watchdog.start()
            self.assertTrue(any(line.startswith("step 5 ") for line in process.stdout))
            process.terminate()
            last = process.stdout.read().splitlines()[-1]
            code = process.wait()
            watchdog.cancel()
        self.assertEqual(code, train.EXIT_TERMINATED)
        step = int(re.fullmatch(r"terminated at step (\d+), a checkpoint is written", last).group(1))
        self.assertEqual(train.checkpoints(self.folder)[0], f"step-{step:08d}.json")
        self.assertFalse(os.path.exists(self.in_folder("result.json")))
        result = run(self.folder, "--steps", step + 7)[2]
        self.assertEqual(result["weights_sha256"], self.uninterrupted(step + 7))

    def test_with_a_clear_message_for_a_wrong_number(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as ended:
            run(self.folder, "--steps", 0)
        self.assertEqual(ended.exception.code, 2)
        self.assertIn("argument --steps: must be 1 or more, not 0", said.getvalue())


if __name__ == "__main__":
    unittest.main()
