#!/usr/bin/env python3
"""What `cmake --install` makes runs from any folder, knows nothing of the checkout, and carries what it needs."""
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import farm

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))
import toolchains

BUILD = farm.BIN.parent
PROGRAMS = ("layerfarm", "torq-gen-config", "layerfarm-worker", "layerfarm-onnx", "layerfarm-ort")


class Install(farm.Farm):
    def setUp(self):
        super().setUp()
        self.prefix = self.folder / "first" / "place"
        done = subprocess.run(["cmake", "--install", BUILD, "--prefix", self.prefix], capture_output=True, text=True, check=False, timeout=farm.LONGEST)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        # Nothing of ours or of the machine's: not even a way to the dependency cache.
        self.env = {"HOME": str(self.folder / "home"), "PATH": "/usr/bin:/bin", "LAYERFARM_CACHE_DIR": str(self.cache)}
        (self.folder / "home").mkdir()

    def use_toolchains(self, *wanted):
        """A cache that has these of the test machine's folders ("python" is the environment)."""
        there = self.folder / "toolchains"
        there.mkdir(exist_ok=True)
        base, parts = toolchains.read_lock(toolchains.lock_file().read_text(encoding="utf-8"))
        for part in [base, *parts]:
            if part.name in wanted:
                # The interpreter finds the toolchains beside its own name, so through a link it finds those that are linked here.
                (there / part.folder).symlink_to(toolchains.cache_folder() / part.folder)
        self.env["LAYERFARM_DEPS_DIR"] = str(there)

    def program(self, *arguments, name="layerfarm", code=0):
        done = subprocess.run([self.prefix / "bin" / name, *map(str, arguments)], env=self.env, cwd=self.folder, capture_output=True, text=True,
                              check=False, timeout=farm.LONGEST)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def move(self):
        """To another prefix; whatever still looked at the old one finds nothing."""
        new = self.folder / "a second" / "place"
        new.parent.mkdir()
        self.prefix.rename(new)
        self.prefix = new

    def test_it_runs_where_it_was_moved_to_without_any_toolchain(self):
        self.move()
        self.assertIn("ort-cpu", self.program("chips"))
        self.program("discover", "--model", farm.MODELS / "gen_odd.onnx", "--chip", "ort-cpu", "--workers", 1, "--output-dir", self.out)
        report = self.out / "torq_gen_config_gen_odd.json"
        layers = list(json.loads(report.read_text(encoding="utf-8"))["ops"])
        self.assertGreater(len(layers), 5)
        self.assertIn(f"LAYER: {layers[0]}", self.program("view", report, layers[0]))
        self.assertIn("Updated", self.program("edit", report, "--layer", layers[0], "--executor", "cpu-noopt"))

    def test_what_a_chip_lacks_is_told_with_the_command_that_installs_it(self):
        said = self.program("discover", "--model", farm.MODELS / "gen_odd.onnx", "--chip", "host-cpu", "--output-dir", self.out, code=1)
        self.assertIn("layerfarm toolchains install iree", said)
        self.assertFalse(self.out.exists())
        self.assertIn("layerfarm toolchains install qnn", self.program("chips"))
        said = self.program("discover", "--model", farm.MODELS / "gen_odd.onnx", "--chip", "ort-cpu", "--workers", 1, "--output-dir", self.out)
        self.assertIn("no line numbers: sidecar cannot start: python is missing; run: layerfarm toolchains install iree", said)
        self.use_toolchains("python")
        said = self.program("discover", "--model", farm.MODELS / "gen_odd.onnx", "--chip", "ort-cpu", "--workers", 1, "--output-dir", self.out)
        self.assertIn("iree.compiler is not installed; run: layerfarm toolchains install iree", said)

    def test_an_installed_toolchain_is_found_and_listed(self):
        def listed():
            return {entry["toolchain"]: entry["installed"] for entry in json.loads(self.program("toolchains", "list", "--json"))}

        self.assertEqual(listed(), {"iree": False, "qnn": False, "openvino": False, "quantize": False})
        self.use_toolchains("python", "iree")
        self.assertEqual(listed(), {"iree": True, "qnn": False, "openvino": False, "quantize": False})
        self.assertRegex(self.program("toolchains"), r"iree +3\.[0-9.]+ +yes ")
        self.assertIn("there already", self.program("toolchains", "install", "iree"))
        self.assertIn("not in {iree", self.program("toolchains", "install", "acme", code=2))
        self.program("discover", "--model", farm.MODELS / "gen_odd.onnx", "--chip", "host-cpu", "--layers", "MatMul*", "--workers", 1,
                     "--output-dir", self.out, name="torq-gen-config")
        report = json.loads((self.out / "torq_gen_config_gen_odd.json").read_text(encoding="utf-8"))
        self.assertEqual([op["recommended_executor"] for op in report["ops"].values()], ["llvm-cpu"])
        self.assertRegex(next(iter(report["ops"].values()))["mlir_location"], r"^\d+:\d+$")

    def test_installing_needs_python_and_says_so(self):
        self.env["PATH"] = str(self.folder)
        self.assertIn("install the Debian packages python3 and python3-venv", self.program("toolchains", "install", "iree", code=1))
        (self.prefix / "share" / "layerfarm" / "toolchains" / "toolchains.py").unlink()
        self.assertIn("toolchains.py is missing: install layerfarm again", self.program("toolchains", "install", "iree", code=1))

    def test_everything_is_there_and_nothing_of_the_checkout_or_the_tests(self):
        files = {str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*") if not path.is_dir()}
        wanted = {
            *(f"bin/{name}" for name in PROGRAMS), "lib/layerfarm/libonnxruntime.so.1", "share/man/man1/layerfarm.1", "share/man/man1/torq-gen-config.1",
            "share/bash-completion/completions/layerfarm", "share/bash-completion/completions/torq-gen-config", "share/zsh/vendor-completions/_layerfarm",
            "share/fish/vendor_completions.d/layerfarm.fish", "share/fish/vendor_completions.d/torq-gen-config.fish", "share/doc/layerfarm/copyright",
            "share/doc/layerfarm/licenses/onnx/LICENSE", "share/doc/layerfarm/licenses/onnxruntime/LICENSE",
            "share/doc/layerfarm/licenses/onnxruntime/ThirdPartyNotices.txt", "share/layerfarm/toolchains/dependencies.lock",
            "share/layerfarm/toolchains/toolchains.py"}
        for folder, name in (("configs", "configs"), ("worker/toolchain/sidecar", "sidecar")):
            wanted |= {f"share/layerfarm/{name}/{path.relative_to(ROOT / folder)}" for path in (ROOT / folder).rglob("*")
                       if path.is_file() and "__pycache__" not in path.parts}
        self.assertEqual(wanted - files, set())
        allowed = re.compile(r"lib/layerfarm/libonnxruntime|share/doc/layerfarm/licenses/")
        self.assertEqual({name for name in files - wanted if not allowed.match(name)}, set())
        # With a folder of the project behind it: a checkout may lie in a place whose name alone stands in any licence's text, such as /src.
        ours = re.compile(rb"(?<![\w./-])" + re.escape(os.fsencode(ROOT)) + rb"/(build|configs|coordinator|scripts|shared|tests|worker)\b")
        for name in sorted(files):
            path = self.prefix / name
            if path.is_symlink():
                self.assertNotIn("/", os.readlink(path), name)
                continue
            self.assertEqual(stat.S_IMODE(path.stat().st_mode) & 0o022, 0, f"{name} can be written by others")
            # Programs of a dev build have line tables with its folders; scripts/verify_package looks into those of the release build.
            if not name.startswith(("bin/", "lib/")):
                self.assertIsNone(ours.search(path.read_bytes()), f"{name} names the checkout")
            else:
                dynamic = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
                self.assertNotRegex(dynamic, r"\((RPATH|RUNPATH)\).*\[/", name)

    def test_without_its_library_it_says_what_to_do(self):
        shutil.rmtree(self.prefix / "lib")
        self.assertIn("install layerfarm again", self.program("discover", "--model", farm.MODELS / "gen_odd.onnx", "--chip", "ort-cpu", code=1))


if __name__ == "__main__":
    unittest.main()
