#!/usr/bin/env python3
"""scripts/lib/toolchains.py: reading the lock, and installing, with a pip of our own in place of the real one."""

import contextlib
import importlib.util
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "lib" / "toolchains.py"
spec = importlib.util.spec_from_file_location("toolchains", SCRIPT)
toolchains = importlib.util.module_from_spec(spec)
spec.loader.exec_module(toolchains)

DIGEST = "0123456789abcdef" * 4
LOCK = f"""# a comment
apt build g++ 4:12.2
pypi python onnx 1.2 {DIGEST}
pypi build cmake 4.0 {DIGEST}
toolchain acme acme-compiler Acme's compiler
pypi acme acme-runtime 3.1 {DIGEST}
pypi acme acme-compiler 3.0 {DIGEST}
toolchain other other-one Another
pypi other other-one 7 {DIGEST}
"""


class Lock(unittest.TestCase):
    def refused(self, text, *wanted):
        with self.assertRaises(toolchains.Failed) as caught:
            toolchains.read_lock(text, "the.lock")
        for word in wanted:
            self.assertIn(word, str(caught.exception))

    def test_a_toolchain_is_the_packages_of_its_group_at_the_version_of_the_leading_one(self):
        base, parts = toolchains.read_lock(LOCK)
        self.assertEqual([package.name for package in base.packages], ["onnx"])
        self.assertEqual([part.name for part in parts], ["acme", "other"])
        self.assertEqual(parts[0].version, "3.0")
        self.assertEqual(parts[0].text, "Acme's compiler")
        self.assertEqual([package.import_name for package in parts[0].packages], ["acme_runtime", "acme_compiler"])

    def test_another_pin_is_another_folder_of_that_toolchain_and_of_the_environment_only(self):
        base, (acme, other) = toolchains.read_lock(LOCK)
        new_base, (new_acme, new_other) = toolchains.read_lock(LOCK.replace("acme-runtime 3.1", "acme-runtime 3.2"))
        self.assertNotEqual(acme.folder, new_acme.folder)
        self.assertEqual(other.folder, new_other.folder)
        self.assertNotEqual(base.folder, new_base.folder)  # it names the toolchains' folders
        unrelated = LOCK.replace("cmake 4.0", "cmake 4.1").replace("# a comment", "# another")
        self.assertEqual(base.folder, toolchains.read_lock(unrelated)[0].folder)

    def test_a_broken_line_is_named(self):
        self.refused(LOCK.replace(f"acme-runtime 3.1 {DIGEST}", "acme-runtime 3.1"), "the.lock, line 6", "SHA256")
        self.refused(LOCK.replace(f"onnx 1.2 {DIGEST}", "onnx 1.2 abc"), "the.lock, line 3")
        self.refused(LOCK.replace("toolchain acme acme-compiler Acme's compiler", "toolchain acme acme-compiler"), "the.lock, line 5")
        self.refused(LOCK.replace("Another", 'An "other'), "the.lock, line 8")
        self.refused(LOCK.replace("acme acme-compiler Acme", "acme acme-linker Acme"), "pypi acme acme-linker")
        self.refused(LOCK.replace("pypi python onnx", "pypi pyton onnx"), "pypi python")

    def test_the_real_lock_has_every_toolchain_that_a_chip_file_needs(self):
        _, parts = toolchains.read_lock(toolchains.lock_file().read_text(encoding="utf-8"))
        brought = {package.import_name for part in parts for package in part.packages}
        self.assertLessEqual({"iree_base_compiler", "iree_base_runtime", "onnxruntime_qnn", "onnxruntime_ep_openvino", "onnxruntime"}, brought)


class Installing(unittest.TestCase):
    """The script as a program, over a lock of its own; pip is a function of the test."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="layerfarm-test-"))
        self.cache = self.folder / "cache"
        self.script = self.folder / "toolchains.py"
        shutil.copy(SCRIPT, self.script)
        (self.folder / "dependencies.lock").write_text(LOCK, encoding="utf-8")
        # Stands before the script's own run(): makes what venv and pip would, or fails as they do.
        self.standin("")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def standin(self, on_pip):
        """`on_pip` runs where pip would; `command` is its command line, `temporary` the folder of this part."""
        text = SCRIPT.read_text(encoding="utf-8")
        replaced = text.replace('if __name__ == "__main__":', f'''
def run(self, command, temporary, what):
    import time
    command = [str(word) for word in command]
    if "venv" in command:
        (pathlib.Path(command[-1]) / "bin").mkdir(parents=True)
        (pathlib.Path(command[-1]) / "bin" / "python").touch()
        (pathlib.Path(command[-1]) / "bin" / "pip").touch()
        (pathlib.Path(command[-1]) / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
        return
    if "check" in command:
        return
    log = pathlib.Path(temporary) / "log"
    requirements = (pathlib.Path(temporary) / "requirements.txt").read_text()
    assert "--require-hashes" in command and "--no-deps" in command and "--hash=sha256:" in requirements
{on_pip}
    if "--target" in command:
        (pathlib.Path(command[command.index("--target") + 1]) / "installed").write_text(requirements)


Installer.run = run
if __name__ == "__main__":''')
        self.assertNotEqual(text, replaced)
        self.script.write_text(replaced, encoding="utf-8")

    def start(self, *arguments):
        environment = {"HOME": str(self.folder), "PATH": os.environ["PATH"], "LAYERFARM_DEPS_DIR": str(self.cache)}
        return subprocess.Popen([sys.executable, "-I", "-B", self.script, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def install(self, *names, code=0):
        process = self.start("install", *names)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, out + err)
        return out + err

    def folders(self):
        return sorted(path.name.rsplit("-", 1)[0] for path in self.cache.iterdir() if path.is_dir())

    def test_only_what_was_asked_for_is_installed_and_the_interpreter_knows_where_the_rest_would_be(self):
        self.install("acme")
        self.assertEqual(self.folders(), ["python", "python-acme"])
        base = next(path for path in self.cache.iterdir() if path.name.count("-") == 1 and path.is_dir())
        lines = (base / "site-packages" / "toolchains.pth").read_text(encoding="utf-8").splitlines()
        self.assertEqual(len(lines), 2)
        self.assertTrue(((base / "site-packages").resolve() / lines[0] / "installed").is_file())
        self.assertFalse(((base / "site-packages").resolve() / lines[1]).exists())
        self.assertEqual([path.name for path in (base / "bin").iterdir()], ["python"])
        self.install("other")
        self.assertTrue(((base / "site-packages").resolve() / lines[1] / "installed").is_file())

    def test_what_is_there_is_not_installed_again(self):
        self.install("all")
        self.standin("    raise SystemExit('pip was started')")
        self.assertIn("there already", self.install("acme", "other"))
        self.assertEqual(self.install("--quiet", "all"), "")

    def test_an_unknown_name_installs_nothing_and_names_the_known_ones(self):
        said = self.install("acme", "acne", code=1)
        self.assertIn("no toolchain 'acne'; there are: acme, other, all", said)
        self.assertFalse(self.cache.exists())

    def test_a_failing_pip_leaves_nothing_and_its_reason_is_said(self):
        cases = {
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device": "no room left in",
            "NewConnectionError(...): Failed to establish a new connection": "cannot be reached",
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.": "not what the lock names",
        }
        for printed, wanted in cases.items():
            self.standin(f"    raise Failed(what + ': ' + str(explanation({printed!r}, self.cache)))")
            said = self.install("acme", code=1)
            self.assertIn(wanted, said)
            self.assertEqual(self.folders(), [])
        self.assertIsNone(toolchains.explanation("something new", self.cache))
        room = toolchains.LITTLE_ROOM
        try:
            toolchains.LITTLE_ROOM = 1 << 62
            self.assertIn("no room left in", toolchains.explanation("returned non-zero exit status 1", self.cache))
        finally:
            toolchains.LITTLE_ROOM = room

    def test_an_installation_that_is_killed_leaves_nothing_that_anyone_believes_in(self):
        self.standin("    (pathlib.Path(temporary) / 'begun').touch()\n    time.sleep(60)")
        process = self.start("install", "acme")
        deadline = time.monotonic() + 30
        while not list(self.cache.glob(".toolchains.*/begun")):
            self.assertLess(time.monotonic(), deadline, "it does not begin")
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.kill()
        process.communicate(timeout=30)
        self.assertEqual([name for name in self.folders() if name.startswith("python")], [])
        self.assertTrue(list(self.cache.glob(".toolchains.*/begun")))
        self.standin("")
        self.install("acme")
        self.assertEqual(self.folders(), ["python", "python-acme"])  # what was left half made is gone

    def test_one_that_is_ended_politely_takes_its_half_away_itself(self):
        self.standin("    (pathlib.Path(temporary) / 'begun').touch()\n    time.sleep(60)")
        process = self.start("install", "acme")
        deadline = time.monotonic() + 30
        while not list(self.cache.glob(".toolchains.*/begun")):
            self.assertLess(time.monotonic(), deadline, "it does not begin")
            time.sleep(0.01)
        process.terminate()
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 143)
        self.assertEqual(self.folders(), [])

    def test_two_at_once_wait_for_each_other(self):
        self.standin("    time.sleep(0.5)")
        processes = [self.start("install", "all") for _ in range(2)]
        texts = [process.communicate(timeout=60)[0] for process in processes]
        self.assertEqual([process.returncode for process in processes], [0, 0], texts)
        self.assertEqual(sum("acme: installing" in text for text in texts), 1, texts)
        self.assertTrue(any("another installation is at work" in text for text in texts), texts)

    def test_a_folder_without_its_mark_is_made_anew(self):
        self.install("acme")
        (folder,) = self.cache.glob("python-acme-*")
        (folder / ".complete").unlink()
        self.install("acme")
        self.assertTrue((folder / ".complete").exists())

    def test_a_cache_that_cannot_be_written_to_is_named(self):
        self.cache.write_text("a file", encoding="utf-8")
        self.assertIn(f"cannot write to {self.cache}", self.install("acme", code=1))

    def test_python_without_venv_is_told_which_package_to_install(self):
        found = importlib.util.find_spec
        try:
            importlib.util.find_spec = lambda name: None if name == "ensurepip" else found(name)
            with self.assertRaises(toolchains.Failed) as caught:
                toolchains.check_python()
        finally:
            importlib.util.find_spec = found
        self.assertIn("python3-venv", str(caught.exception))

    def test_another_python_is_refused(self):
        wanted = toolchains.PYTHON
        try:
            toolchains.PYTHON = (3, 1)
            with self.assertRaises(toolchains.Failed) as caught:
                toolchains.check_python()
        finally:
            toolchains.PYTHON = wanted
        self.assertIn("Python 3.1 ", str(caught.exception))

    def test_without_a_command_the_usage_is_shown(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(toolchains.main([]), 2)
        self.assertIn("usage:", said.getvalue())


if __name__ == "__main__":
    unittest.main()
