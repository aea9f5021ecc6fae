"""Things that go wrong: tools that crash, hang, fill memory or print without end; killed workers and coordinators; interrupts."""
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from farm import LONGEST, MODELS, Farm


class Tools(Farm):
    def results(self):
        return [entry["executors"]["e0"] for entry in self.report("gen_odd")["ops"].values()]

    def summaries(self):
        return {result["failure_report"]["summary"] for result in self.results()}

    def test_a_tool_that_refuses_is_an_error_with_its_words(self):
        done = self.discover("gen_odd", self.chip("c", ["sh", "-c", "echo this layer is not for me >&2; exit 3"]), code=1)
        self.assertEqual(done.stderr.count(" = error (stand-in)\n  (exit code 3: this layer is not for me)\n"), 9, done.stderr)
        self.assertEqual(self.summaries(), {"exit code 3: Test execution failed"})
        self.assertEqual({result["status"] for result in self.results()}, {"error"})
        again = self.discover("gen_odd", "c", code=1)
        self.assertIn("0 fresh, 9 from the store", again.stderr)
        self.assertIn("\n9 of 9 error(s) come from the store; --recompute-cache tests them again\n", again.stderr)
        self.assertNotIn("--recompute-cache", done.stderr + self.discover("gen_odd", "c", "--recompute-cache", code=1).stderr)
        mute = self.discover("gen_odd", self.chip("mute", ["sh", "-c", "exit 4"]), out=self.folder / "mute", code=1)
        self.assertEqual(mute.stderr.count("\n  (exit code 4)\n"), 9, mute.stderr)

    def test_a_tool_that_ends_with_a_traceback_is_shown_by_its_exception(self):
        done = self.discover("gen_odd", self.chip("c", ["/usr/bin/python3", "-c", "raise ValueError('no such axis')"]), code=1)
        self.assertIn("  (exit code 1: ValueError: no such axis)\n", done.stderr)
        self.assertRegex(done.stderr, r"\nRefused:\n(  \w+ on E0 \([0-9] layer\(s\)\): exit code 1: ValueError: no such axis\n)+Evidence")
        layer = next(iter(self.report("gen_odd")["ops"]))
        shown = self.run_farm("view", self.report_path("gen_odd"), layer, code=0).stdout
        self.assertIn("    Summary: exit code 1: Test execution failed\n    Reason: exit code 1: ValueError: no such axis\n", shown)

    def test_a_tool_that_crashes_is_tried_again_and_named_by_its_signal(self):
        done = self.discover("gen_odd", self.chip("c", ["sh", "-c", "kill -SEGV $$"]), "-v", code=1)
        self.assertIn("crashed: SIGSEGV", json.dumps(self.report("gen_odd")))
        self.assertIn("tried again", done.stderr)
        again = self.discover("gen_odd", "c", code=1)
        self.assertIn("9 fresh, 0 from the store", again.stderr)

    def test_a_tool_that_hangs_is_ended_with_all_it_started(self):
        self.discover("gen_odd", self.chip("c", ["sh", "-c", "trap '' TERM; sleep 600 & sleep 600"]), "--run-timeout", "0.3", code=1)
        self.assertIn("timed out after 300 ms", json.dumps(self.report("gen_odd")))

    def test_a_tool_that_fills_memory_is_ended_at_the_limit(self):
        hog = "x = [bytearray(16 << 20) for _ in iter(int, 1)]"
        self.discover("gen_odd", self.chip("c", ["/usr/bin/python3", "-c", hog]), "--memory", "128MB", "--layers", "clip*", code=1)
        self.assertIn("memory", json.dumps(self.report("gen_odd")["ops"]).lower())

    def test_a_tool_that_prints_without_end_is_ended(self):
        self.discover("gen_odd", self.chip("c", ["sh", "-c", "yes layerfarm"], limits={"output_bytes": 1000000}), "--layers", "clip*", code=1)
        self.assertIn("printed more than 1000000 bytes", json.dumps(self.report("gen_odd")["ops"]))

    def test_a_tool_that_cannot_start_says_nothing_of_the_layer(self):
        library = self.folder / "library"
        script = f"test -e {library} && exit 0; echo 't: error while loading shared libraries: lib.so: cannot open' >&2; exit 127"
        chip = self.chip("c", ["sh", "-c", script])
        done = self.discover("gen_odd", chip, "--layers", "clip*", code=3)
        self.assertRegex(done.stderr, r"E0 = unsettled \(.*process cannot start here: t: error while loading shared libraries: lib.so: cannot open\)\n")
        library.write_text("")
        mended = self.discover("gen_odd", "c", "--layers", "clip*", code=0)
        self.assertIn("1 fresh, 0 from the store", mended.stderr)

    def test_a_tool_that_is_not_there_ends_the_command_before_anything(self):
        done = self.discover("gen_odd", self.chip("c", ["/no/such/tool"]), code=1)
        self.assertIn("/no/such/tool", done.stderr)
        self.assertFalse(self.out.exists())

    def test_everything_about_a_failed_case_can_be_kept(self):
        kept = self.folder / "kept"
        self.discover("gen_odd", self.chip("c", ["sh", "-c", "echo no >&2; exit 3"]), "--keep-failed", kept, "--layers", "clip*", code=1)
        folders = [path.parent for path in kept.rglob("case.json")]
        self.assertTrue(folders)
        case = json.loads((folders[0] / "case.json").read_text())
        self.assertEqual(case["status"], "error")
        self.assertTrue((folders[0] / case["module"]).exists())
        self.assertIn("exit 3", (folders[0] / case["diagnostic"]).read_text())

    def test_a_tool_that_writes_to_its_input_harms_no_other_case(self):
        self.discover("gen_odd", self.chip("c", ["bash", "-c", "echo garbage > $0; exit 1"],
                                           options={"command": ["bash", "-c", "echo garbage > $0; exit 1"], "layer_argument": "1"}), code=1)
        self.discover("gen_odd", "ort-cpu", out=self.folder / "other", code=0)

    def test_damaged_blobs_are_made_again_and_nobody_is_blamed(self):
        self.discover("gen_odd", "ort-cpu", code=0)
        for blob in (self.cache / "blobs").glob("??/*"):
            blob.chmod(0o644)
            blob.write_bytes(b"garbage")
        self.discover("gen_odd", "ort-cpu", "--recompute-cache", out=self.folder / "again", code=0)
        for blob in (self.cache / "blobs").glob("??/*"):
            blob.chmod(0o644)
            blob.write_bytes(b"")
        self.discover("gen_odd", "null", out=self.folder / "null", code=0)

    def test_scratch_is_gone_afterwards(self):
        self.discover("gen_odd", self.chip("c", ["sh", "-c", "mkdir -p a/b; chmod 0 a; dd if=/dev/zero of=big bs=1k count=9 2>&1"]))
        self.assertEqual([str(path) for path in (self.cache / "scratch").rglob("*")], [])


class Kills(Farm):
    """The process chip takes a while per case, so that there is something to kill."""

    def slow(self):
        return self.chip("slow", ["sh", "-c", "sleep 0.05"])

    def undisturbed(self):
        out = self.folder / "undisturbed"
        cache = self.env["LAYERFARM_CACHE_DIR"]
        self.env["LAYERFARM_CACHE_DIR"] = str(self.folder / "other-cache")
        self.discover("gen_repeat_cnn", "slow", out=out, code=0)
        self.env["LAYERFARM_CACHE_DIR"] = cache
        return self.files(out)

    def test_a_killed_worker_costs_nothing_but_time(self):
        self.slow()
        run = self.start("discover", "--model", MODELS / "gen_repeat_cnn.onnx", "--chip", "slow", "--workers", "2", "--output-dir", self.out)
        for _ in range(2):
            self.wait_until(lambda: len(self.workers_of(run.pid)) == 2, "two workers")
            time.sleep(0.1)
            os.kill(random.choice(self.workers_of(run.pid)), signal.SIGKILL)
        out, err = run.communicate(timeout=LONGEST)
        self.assertEqual(run.returncode, 0, err)
        self.assertIn("SIGKILL", err)
        self.assertEqual(self.files(), self.undisturbed())

    def test_a_killed_launcher_takes_its_worker_along_and_nothing_is_blamed(self):
        self.slow()
        run = self.start("discover", "--model", MODELS / "gen_repeat_cnn.onnx", "--chip", "slow", "--workers", "2", "--output-dir", self.out)
        for _ in range(2):
            self.wait_until(lambda: len(self.workers_of(run.pid)) == 2 and len(self.launchers_of(run.pid)) == 2, "two workers")
            time.sleep(0.1)
            os.kill(random.choice(self.launchers_of(run.pid)), signal.SIGKILL)
        out, err = run.communicate(timeout=LONGEST)
        self.assertEqual(run.returncode, 0, err)
        self.assertIn("ended from outside", err)
        self.assertEqual(self.files(), self.undisturbed())

    def test_a_killed_coordinator_loses_only_what_was_under_way(self):
        self.slow()
        arguments = ("discover", "--model", MODELS / "gen_repeat_cnn.onnx", "--chip", "slow", "--workers", "2", "--output-dir", self.out)
        run = self.start(*arguments)
        self.wait_until(lambda: self.report_path("gen_repeat_cnn").exists(), "a first report")
        time.sleep(0.2)
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=LONGEST)
        self.assertEqual(self.processes(), [])
        view = self.run_farm("view", self.report_path("gen_repeat_cnn"), code=0)
        self.assertIn("was ended before its end", view.stdout + view.stderr)
        before = self.report_path("gen_repeat_cnn").read_bytes()
        again = self.run_farm(*arguments, code=0)
        self.assertIn("brought up to date", again.stderr)
        self.assertNotIn(" 0 from the store", again.stderr)
        self.assertNotEqual(self.report_path("gen_repeat_cnn").read_bytes(), before)
        self.assertEqual(self.files(), self.undisturbed())

    def test_edit_after_a_kill_first_brings_the_files_up_to_date(self):
        self.slow()
        run = self.start("discover", "--model", MODELS / "gen_repeat_cnn.onnx", "--chip", "slow", "--workers", "2", "--output-dir", self.out)
        self.wait_until(lambda: self.report_path("gen_repeat_cnn").exists(), "a first report")
        time.sleep(0.5)
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=LONGEST)
        known = json.loads(self.run_farm("cache", "stats", "--json", code=0).stdout)["keys"]
        self.run_farm("edit", self.report_path("gen_repeat_cnn"), "--layer", "Conv_stem.out", "--executor", "null", code=0)
        report = self.report("gen_repeat_cnn")
        tested = sum(len(entry["executors"]) for entry in report["ops"].values())
        self.assertGreaterEqual(tested, known - 2)
        self.assertIsNone(report["ops"]["Conv_stem.out"]["recommended_executor"])

    def test_an_interrupt_ends_children_and_leaves_valid_files(self):
        self.slow()
        run = self.start("discover", "--model", MODELS / "gen_repeat_cnn.onnx", "--chip", "slow", "--workers", "2", "--output-dir", self.out)
        self.wait_until(lambda: self.report_path("gen_repeat_cnn").exists(), "a first report")
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=20)
        self.assertEqual(run.returncode, 3, err)
        self.assertEqual(self.processes(), [])
        report = self.report("gen_repeat_cnn")
        self.assertNotIn("final_report_text", report)
        done = self.discover("gen_repeat_cnn", "slow", code=0)
        self.assertEqual(self.files(), self.undisturbed())

    def test_many_kills_at_random_moments_end_in_the_same_files(self):
        self.slow()
        expected = self.undisturbed()
        seed = int(os.environ.get("LAYERFARM_SIM_SEED", "20261130"))
        print("seed", seed)
        dice = random.Random(seed)
        arguments = ("discover", "--model", MODELS / "gen_repeat_cnn.onnx", "--chip", "slow", "--workers", "2", "--output-dir", self.out)
        for _ in range(6):
            run = self.start(*arguments)
            time.sleep(dice.uniform(0.05, 0.9))
            if run.poll() is None:
                victims = [run.pid, *self.workers_of(run.pid)]
                os.kill(dice.choice(victims), signal.SIGKILL)
                time.sleep(0.1)
                run.send_signal(signal.SIGKILL)
            run.communicate(timeout=LONGEST)
        self.run_farm(*arguments, code=0)
        self.assertEqual(self.files(), expected)


class Together(Farm):
    def test_two_runs_into_one_folder_leave_whole_files_with_everything(self):
        self.chip("slow", ["sh", "-c", "sleep 0.02"])
        model = MODELS / "gen_repeat_cnn.onnx"
        first = self.start("discover", "--model", model, "--chip", "slow", "--workers", "1", "--output-dir", self.out, "--layers", "conv*")
        second = self.start("discover", "--model", model, "--chip", "slow", "--workers", "1", "--output-dir", self.out, "--layers", "relu*")
        for run in (first, second):
            out, err = run.communicate(timeout=LONGEST)
            self.assertEqual(run.returncode, 0, err)
        tested = {name.split("_")[0] for name, entry in self.report("gen_repeat_cnn")["ops"].items() if entry["executors"]}
        self.assertEqual(tested, {"Conv", "Relu"})

    def test_an_edit_while_a_run_writes_is_kept(self):
        self.chip("slow", ["sh", "-c", "sleep 0.5"])
        run = self.start("discover", "--model", MODELS / "gen_repeat_cnn.onnx", "--chip", "slow", "--workers", "2", "--output-dir", self.out)
        self.wait_until(lambda: self.report_path("gen_repeat_cnn").exists(), "a first report")
        self.wait_until(lambda: "Conv_stem.out" in self.report("gen_repeat_cnn")["ops"], "the first layer")
        edits = 0
        while run.poll() is None:
            self.run_farm("edit", self.report_path("gen_repeat_cnn"), "--layer", "Conv_stem.out", "--executor", "null", code=0)
            edits += 1 if run.poll() is None else 0
            time.sleep(0.05)
        self.assertGreater(edits, 0)
        out, err = run.communicate(timeout=LONGEST)
        self.assertEqual(run.returncode, 0, err)
        self.assertIsNone(self.report("gen_repeat_cnn")["ops"]["Conv_stem.out"]["recommended_executor"])
        self.assertTrue(all(entry["executors"] for entry in self.report("gen_repeat_cnn")["ops"].values()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
