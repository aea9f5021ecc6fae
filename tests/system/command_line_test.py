"""The command line as people and shells see it: both names of the program, completion and manual page, config files, compare."""
import json
import os
import re
import shutil
import subprocess
import unittest

from farm import BIN, MODELS, Farm

SHELLS = ("bash", "zsh", "fish")
GOLDEN = MODELS.parent.parent / "golden" / "report"


def flags_in(text):
    """Flags that a help text defines."""
    found = set()
    for line in text.splitlines():
        defined = re.match(r"  ((?:-\w,)?--[\w,-]+)", line)
        if defined:
            found.update(name for name in defined.group(1).split(",") if name.startswith("--"))
    return found


class Texts(Farm):
    def test_every_flag_of_discover_is_in_each_completion_and_in_the_manual_page(self):
        flags = flags_in(self.run_farm("discover", "--help", code=0).stdout)
        self.assertGreater(len(flags), 25, "the help text is not understood")
        self.assertTrue({"--model", "--compiler-option", "--debug-ir", "--config", "--torq-hw", "--chip", "--verbose"} <= flags)
        for shell in SHELLS:
            text = self.run_farm("completion", shell, code=0).stdout
            for flag in flags:
                word = "-l " + flag[2:] + " " if shell == "fish" else flag
                self.assertTrue(re.search(re.escape(word.strip()) + r"(?![\w-])", text), f"{flag} is missing for {shell}")
        page = self.run_farm("man", code=0).stdout
        for flag in flags:
            self.assertIn("\\fB" + flag.replace("-", "\\-") + "\\fR", page)
        for command in ("discover", "view", "edit", "compare", "chips", "cache prune", "completion bash"):
            self.assertIn(f"layerfarm {command}", page)

    def test_every_command_has_its_own_help(self):
        text = self.run_farm("--help", code=0).stdout
        for command in ("discover", "view", "edit", "compare", "chips", "cache", "completion", "man"):
            self.assertRegex(text, rf"(?m)^  {command} ")

    def completed(self, *words):
        """What bash offers for the last word."""
        script = self.folder / "completion.bash"
        script.write_text(self.run_farm("completion", "bash", code=0).stdout)
        quoted = " ".join(f"'{word}'" for word in words)
        run = f'source "{script}"; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; compopt() {{ :; }}; _layerfarm; printf "%s\\n" "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-euc", run], capture_output=True, text=True, cwd=self.folder, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def test_bash_offers_commands_flags_values_and_files(self):
        self.assertEqual(self.completed("layerfarm", "dis"), ["discover"])
        self.assertEqual(self.completed("torq-gen-config", "com"), ["compare", "completion"])
        self.assertEqual(self.completed("layerfarm", "discover", "--timing"), ["--timing-runs"])
        self.assertEqual(self.completed("layerfarm", "discover", "--fail-on", "e"), ["error"])
        self.assertEqual(self.completed("layerfarm", "discover", "--fail-on", "=", "n"), ["never"])
        self.assertEqual(self.completed("layerfarm", "cache", "pr"), ["prune"])
        self.assertEqual(self.completed("layerfarm", "cache", "prune", "--max"), ["--max-size"])
        self.assertEqual(self.completed("layerfarm", "completion", "z"), ["zsh"])
        (self.folder / "model_x.onnx").write_text("")
        (self.folder / "model_dir").mkdir()
        self.assertEqual(sorted(self.completed("layerfarm", "discover", "--model", "mod")), ["model_dir", "model_x.onnx"])
        self.assertEqual(self.completed("layerfarm", "discover", "--output-dir", "mod"), ["model_dir"])
        for name in ("model_r.json", "model_r_compiler.json", "model_r_mac_debug.json"):
            (self.folder / name).write_text("{}")
        for command in ("compare", "view"):
            self.assertEqual(sorted(self.completed("layerfarm", command, "mod")), ["model_dir", "model_r.json", "model_r_compiler.json"])
        self.assertEqual(sorted(self.completed("layerfarm", "edit", "mod")), ["model_dir", "model_r.json"])
        self.assertEqual(self.completed("layerfarm", "edit", "--li"), ["--list"])
        self.assertEqual(self.completed("layerfarm", "discover", "--chip", "m"), [])

    def test_other_shells_take_their_text(self):
        for shell, check in (("zsh", ("-n",)), ("fish", ("--no-execute",))):
            program = shutil.which(shell)
            if program is None:
                continue  # what is special to each shell is in unit.coordinator.app
            script = self.folder / f"completion.{shell}"
            script.write_text(self.run_farm("completion", shell, code=0).stdout)
            done = subprocess.run([program, *check, script], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_an_unknown_shell_or_none_is_a_usage_error(self):
        self.run_farm("completion", "tcsh", code=2)
        self.run_farm("completion", code=2)


class Names(Farm):
    def called(self, name, *arguments):
        return subprocess.run([BIN / name, *arguments], env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)

    def test_the_program_answers_under_both_names(self):
        for name in ("layerfarm", "torq-gen-config"):
            with self.subTest(name):
                self.assertRegex(self.called(name, "--version").stdout, rf"^{name} \d")
                self.assertIn(f"Usage: {name} ", self.called(name, "--help").stdout)
                self.assertIn(f"Usage: {name} discover ", self.called(name, "discover", "--help").stdout)
                self.assertEqual(self.called(name).returncode, 2)

    def test_a_link_of_another_name_is_layerfarm(self):
        link = self.folder / "lf"
        link.symlink_to(BIN / "layerfarm")
        done = subprocess.run([link, "--version"], capture_output=True, text=True, check=True)
        self.assertTrue(done.stdout.startswith("layerfarm "))

    def test_it_finds_its_parts_under_the_other_name(self):
        done = self.called("torq-gen-config", "discover", "--model", MODELS / "gen_odd.onnx", "--chip", "null", "--output-dir", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.report_path("gen_odd").exists())


class ConfigFiles(Farm):
    def config(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def test_a_run_takes_its_values_from_files(self):
        one = self.config("one.json", {"model_path": str(MODELS / "gen_odd.onnx"), "chip": "ort-cpu", "work_dir": "elsewhere",
                                       "gen_config": {"skip_executors": ["e0"], "workers": 1}})
        two = self.config("two.json", {"config": {"chip": "null", "work_dir": str(self.out), "gen_config": {"skip_ops": "Concat"}}, "results": []})
        done = self.run_farm("discover", "--config", one, "--config", two, code=0)
        report = self.report("gen_odd")
        self.assertEqual(report["_chip"], "null")
        tested = {executor for entry in report["ops"].values() for executor in entry["executors"]}
        self.assertEqual(tested, {"e1", "e2"})
        self.assertEqual(report["ops"]["Concat_joined"]["executors"], {})
        self.assertIn("[Chip] chip=null", done.stderr)
        self.assertFalse((self.folder / "elsewhere").exists())

    def test_one_file_serves_discover_and_run(self):
        file = self.config("c.json", {"model_path": str(MODELS / "gen_odd.onnx"), "chip": "ort-cpu", "work_dir": str(self.out),
                                      "gen_config": {"skip_executors": ["cpu-noopt"], "fail_on": "never", "check_boundaries": True}})
        self.run_farm("discover", "--config", file, code=0)
        self.run_farm("run", "--config", file, code=0)
        self.assertEqual(self.report("gen_odd")["_whole_model"]["status"], "success")
        file = self.config("c.json", {"model_path": str(MODELS / "gen_odd.onnx"), "gen_config": {"skip_executor": ["cpu-noopt"]}})
        for command in ("discover", "run"):
            done = self.run_farm(command, "--config", file, "--output-dir", self.out, code=1)
            self.assertTrue(done.stderr.startswith(f"Error: config file {file}: unknown key 'gen_config.skip_executor' (known: "), done.stderr)

    def test_a_default_on_the_command_line_beats_a_file(self):
        file = self.config("c.json", {"chip": "null", "gen_config": {"skip_mode": True, "fail_on": "never", "timing_runs": 3, "collect_timing": True}})
        self.run_farm("discover", "--model", MODELS / "gen_odd.onnx", "--output-dir", self.out, "--config", file, "--skip-mode=false", code=0)
        tested = {executor for entry in self.report("gen_odd")["ops"].values() for executor in entry["executors"]}
        self.assertEqual(tested, {"e0", "e1", "e2"})

    def test_what_is_wrong_in_a_file_ends_the_command_with_its_name_and_nothing_done(self):
        for content, said in (
            ({"gen_config": {"skip_mod": True}}, "unknown key 'gen_config.skip_mod'"),
            ({"modelpath": "x"}, "unknown key 'modelpath'"),
            ({"gen_config": {"workers": 0}}, "key 'gen_config.workers'"),
            ({"remote": {"address": "user@board"}}, "key 'remote': not supported"),
            ("{", "not JSON"),
        ):
            with self.subTest(said):
                file = self.config("c.json", content)
                done = self.run_farm("discover", "--model", MODELS / "gen_odd.onnx", "--chip", "null", "--output-dir", self.out, "--config", file, code=1)
                self.assertTrue(done.stderr.startswith(f"Error: config file {file}: "), done.stderr)
                self.assertIn(said, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1)
                self.assertFalse(self.out.exists())
        self.assertIn("not-there.json", self.run_farm("discover", "--config", "not-there.json", code=1).stderr)


class Options(Farm):
    def test_options_for_a_toolchain_that_takes_none_are_refused(self):
        done = self.run_farm("discover", "--model", MODELS / "gen_odd.onnx", "--chip", "null", "--compiler-option=--x", "--output-dir", self.out, code=1)
        self.assertEqual(done.stderr, "Error: --compiler-option: the toolchain null of chip null takes no options\n")
        done = self.run_farm("discover", "--model", MODELS / "gen_odd.onnx", "--chip", "null", "--torq-hw-type", "sim", "--output-dir", self.out, code=1)
        self.assertIn("--torq-hw-type: chip null has no run-time hardware types", done.stderr)
        self.assertFalse(self.out.exists())

    def test_a_chip_without_dumps_says_so_and_is_tested(self):
        done = self.run_farm("discover", "--model", MODELS / "gen_odd.onnx", "--chip", "null", "--debug-ir", "--output-dir", self.out, code=0)
        self.assertIn("[DebugIR] chip null: its toolchain null has no intermediate forms to write", done.stderr)
        self.assertFalse((self.folder / "tmp").exists())

    def test_options_reach_iree_and_are_part_of_what_is_known(self):
        arguments = ("discover", "--model", MODELS / "gen_odd.onnx", "--chip", "host-cpu", "--executors", "vmvx", "--layers", "If_picked",
                     "--output-dir", self.out)
        self.run_farm(*arguments, code=0)
        done = self.run_farm(*arguments, "--compiler-option=--no-such-flag-of-iree", code=1)
        self.assertIn("no-such-flag-of-iree", done.stderr + self.report_path("gen_odd").read_text())
        done = self.run_farm(*arguments, "--debug-ir=dumps", code=0)
        self.assertIn("[DebugIR] 1 dump(s) written to dumps", done.stderr)
        folder = self.folder / "dumps" / "If_picked" / "vmvx"
        self.assertIn("onnx.If", (folder / "module.mlir").read_text())
        self.assertGreater(len(list((folder / "phases").iterdir())), 3)


class Compare(Farm):
    def test_discover_edit_compare(self):
        self.run_farm("discover", "--model", MODELS / "gen_odd.onnx", "--chip", "null", "--output-dir", self.out, code=0)
        before = self.folder / "before"
        shutil.copytree(self.out, before)
        report = self.report_path("gen_odd")
        same = self.run_farm("compare", before / report.name, report, code=0)
        self.assertIn("No difference: 9 layer(s)", same.stdout)
        self.run_farm("edit", report, "--layer", "If_picked", "--executor", "e1", code=0)
        changed = self.run_farm("compare", before, self.out, "--model", "gen_odd.onnx", code=1)
        self.assertIn("If_picked: e0 -> e1", changed.stdout)
        self.assertEqual(changed.stderr, "")
        document = json.loads(self.run_farm("compare", "--json", before, self.out, "--model", "gen_odd.onnx", code=1).stdout)
        self.assertEqual(document["recommendations"], [{"layer_id": "If_picked", "a": "e0", "b": "e1"}])
        self.run_farm("compare", report, self.out / "torq_gen_config_gen_odd_compiler.json", code=2)

    def test_usage(self):
        self.run_farm("compare", "only-one", code=2)
        golden = GOLDEN / "mlp_plain" / "01" / "torq_gen_config_mlp.json"
        self.run_farm("compare", golden, golden, "--time-threshold", "-1", code=2)
        self.run_farm("compare", golden, golden, "--time-threshold", "0", code=0)
        self.assertIn("10", self.run_farm("compare", "--help", code=0).stdout)

    def test_a_comparison_that_cannot_be_written_is_none(self):
        golden = GOLDEN / "mlp_plain" / "01" / "torq_gen_config_mlp.json"
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run(self.command("compare", golden, golden), env=self.env, stdout=full, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    unittest.main()
